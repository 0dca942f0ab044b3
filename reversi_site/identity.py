"""Who is at the command line: the operating system's user, which no variable can rename."""

from __future__ import annotations

import os
import pwd


def local_principal() -> str:
    """Return `local:<OS user>`; a user without a name is told by number."""
    number = os.geteuid()
    try:
        return f"local:{pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"local:{number}"
