"""The console script `reversi-gateway`: an MCP server that stands before other MCP servers, and how to set one up."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from reversi_site import cli
from reversi_site.gateway_cli.command import gateway


def main(args: Sequence[str] | None = None) -> int:
    """Run the gateway, or one of its subcommands, and return the exit code."""
    return cli.run(gateway, "reversi-gateway", args)


if __name__ == "__main__":
    sys.exit(main())
