"""The door of the gate: what a call must look like before anything about it is decided or written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals.core.errors import BadCall, KeyConflict
from ledger.core.text import require_text
from reversi_sdk.canonical import canonical_bytes
from reversi_sdk.model import Manifest

TOOL = 128
REASON = 2000
KEY = 255


@dataclass(frozen=True, slots=True)
class Request:
    """One call as it was asked for, checked; `args` are plain JSON values of its own, `body` their canonical bytes."""

    run_id: str
    principal: str
    tool: str
    args: Mapping[str, Any]
    body: bytes
    reason: str
    depends_on: tuple[int, ...]
    key: str | None


def read_request(
    *,
    run_id: str,
    principal: str,
    tool: str,
    args: Any,
    reason: str,
    depends_on: Sequence[int],
    idempotency_key: str | None,
    manifest: Manifest | None,
) -> Request:
    """Check the parts of a call; raises an InvalidInput that names the part."""
    if not isinstance(args, Mapping):
        raise BadCall("args", f"must be an object, not {type(args).__name__}")
    body = canonical_bytes(dict(args))
    plain = json.loads(body)
    return Request(
        run_id=run_id,
        principal=principal,
        tool=tool,
        args=plain,
        body=body,
        reason=require_text("reason", reason, limit=REASON),
        depends_on=_steps(depends_on),
        key=_key(manifest, plain, idempotency_key),
    )


def read_tool(tool: str) -> str:
    """Return the tool's name when it can be one."""
    return _text("tool", tool, limit=TOOL)


def require_earlier(depends_on: Sequence[int], next_step: int) -> None:
    """Raise when a call depends on a step that the run does not have yet."""
    for number in depends_on:
        if not 0 <= number < next_step:
            raise BadCall("depends_on", f"step {number} is not an earlier step of the run")


def _text(part: str, value: object, *, limit: int) -> str:
    text = require_text(part, value, limit=limit)
    # What prints as nothing, or turns the direction of a line, would mislead whoever reads the journal.
    if not text or not text.isprintable() or " " in text:
        raise BadCall(part, "must be a text of visible characters without spaces")
    return text


def _steps(numbers: Sequence[int]) -> tuple[int, ...]:
    if isinstance(numbers, (str, bytes)) or not all(type(number) is int for number in numbers):
        raise BadCall("depends_on", "must be a list of step numbers")
    return tuple(sorted(set(numbers)))


def _key(manifest: Manifest | None, args: Mapping[str, Any], given: str | None) -> str | None:
    """Return the caller's key: given with the call, or already standing in the argument that carries it."""
    if given is not None:
        _text("idempotency_key", given, limit=KEY)
    carrier = manifest.key_carrier if manifest is not None else None
    name = carrier.argument if carrier is not None else None
    if name is None or args.get(name) is None:
        return given
    if given is not None and args[name] != given:
        raise KeyConflict(name)
    return _text(name, args[name], limit=KEY)
