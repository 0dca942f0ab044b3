"""Which upstream a tool belongs to when nothing else says so (D22)."""

from __future__ import annotations

import re


def upstream_of(tool: str) -> str:
    """Return the tool's name up to its first `.` or `/`."""
    return re.split(r"[./]", tool, maxsplit=1)[0]
