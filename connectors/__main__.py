"""`python -m connectors` is `reversi-connectors`."""

from connectors.cli import main

main()
