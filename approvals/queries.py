"""What the gate can be asked: halts. They are read fresh for every call and never remembered (D19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from approvals.core.halts import HaltRecord, HaltScope, call_fields, halts_call
from approvals.models import Halt
from ledger.core.text import make_visible
from ledger.core.values import RunRecord

UNEXPLAINED = "kill file"
_FIRST_LINE = 4096
_SHOWN = 200


def halt_record(row: Halt) -> HaltRecord:
    """Return the halt as a value."""
    return HaltRecord(
        id=row.id,
        scope=HaltScope(row.tool, row.actor, row.tenant, row.environment, row.principal, row.run),
        reason=row.reason,
        added_by=row.added_by,
        added_at=row.added_at,
        lifted_by=row.lifted_by,
        lifted_at=row.lifted_at,
    )


def list_halts(*, active_only: bool = True) -> Sequence[HaltRecord]:
    """Return the halts, oldest first; the lifted ones too when asked."""
    rows = Halt.objects.order_by("added_at", "id")
    if active_only:
        rows = rows.filter(lifted_at__isnull=True)
    return [halt_record(row) for row in rows]


def list_halt_reasons(*, run: RunRecord, tool: str) -> tuple[str, ...]:
    """Return why a call of the run is halted now: the kill file first, then the halts that match."""
    call: Mapping[str, str] = call_fields(run, tool)
    stored = (halt.reason for halt in list_halts() if halts_call(halt.scope, call))
    by_file = kill_reason(settings.CONFIGURATION.kill_switch_file)
    return (*(() if by_file is None else (by_file,)), *stored)


def kill_reason(path: Path | None) -> str | None:
    """Return the first line of the kill file, or None when there is none.

    A file that is there and cannot be read, or a place that cannot be looked at, halts: whoever pulls a kill switch
    must not depend on its permissions.
    """
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.readline(_FIRST_LINE).decode("utf-8", errors="replace").strip()
    except FileNotFoundError:
        return UNEXPLAINED if path.is_symlink() else None
    except NotADirectoryError:
        return None
    except OSError:
        return UNEXPLAINED
    return make_visible(text, limit=_SHOWN) or UNEXPLAINED
