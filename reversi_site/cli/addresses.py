"""Where a server listens, as options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

host_option: Option = click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="HOST", help="Address to listen on."
)
port_option: Option = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    metavar="PORT",
    help="Port to listen on; 0 takes a free one.",
)
