"""`python -m reversi_site.gateway_cli` is `reversi-gateway`."""

import sys

from reversi_site.gateway_cli import main

sys.exit(main())
