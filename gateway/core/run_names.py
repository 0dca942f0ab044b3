"""Which run a call of a client belongs to, and what the client is called (D11).

The run is named, in this order, from outside (the header `Reversi-Run-Id`, the option `--run-id`), in the call's own
`_meta`, or by the handle that the connection got from `reversi.run`. A call that nothing names a run for belongs to the
current run of its principal and client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ledger.core.errors import BadRunId
from ledger.core.text import make_visible
from ledger.core.values import RUN_ID

META_RUN = "reversi/run"
UNNAMED_CLIENT = "mcp-client"
_NAME = 200


class NamedBy(StrEnum):
    """Who named the run."""

    OUTSIDE = "outside"
    META = "meta"
    HANDLE = "handle"


@dataclass(frozen=True, slots=True)
class RunName:
    """The run that a call names."""

    run_id: str
    by: NamedBy


def named_run(*, outside: str | None, meta: Mapping[str, Any] | None, handle: str | None) -> RunName | None:
    """Return the run that is named, None when the current one is meant.

    Raises BadRunId for a name that can be none, wherever it stands: what was named is never passed over.
    """
    in_meta = None if meta is None else meta.get(META_RUN)
    names = ((NamedBy.OUTSIDE, outside), (NamedBy.META, in_meta), (NamedBy.HANDLE, handle))
    found = [RunName(_run_id(name), by) for by, name in names if name is not None]
    return found[0] if found else None


def _run_id(name: object) -> str:
    if not isinstance(name, str) or not RUN_ID.fullmatch(name):
        raise BadRunId(name if isinstance(name, str) else repr(name))
    return name


def client_name(given: object) -> str:
    """Return what a client calls itself as one line that can be stored and shown."""
    text = " ".join(given.split()) if isinstance(given, str) else ""
    return make_visible(text, limit=_NAME) or UNNAMED_CLIENT
