"""`python -m reversi_site.cli` is `reversi`, also where its script is not installed."""

import sys

from reversi_site.cli import main

sys.exit(main())
