"""Fresh identifiers: sortable by the time they were made, unique without asking anybody."""

from __future__ import annotations

import secrets
from datetime import datetime

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid(now: datetime) -> str:
    """Return 26 characters of Crockford base 32: 48 bits of milliseconds, 80 of chance."""
    number = int(now.timestamp() * 1000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
