"""Drafts as YAML that reads back as exactly what was meant, whatever a server put into its texts.

Names that are not plain and all texts are written quoted or as folded blocks of printable characters on lines of our
own, so nothing that a server says can end a value or begin another. Characters that would hide or reorder text are
shown by their numbers.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from manifests_registry.core.drafting.effects import Judgement
from manifests_registry.core.drafting.offers import LeftOut, OfferedTool
from manifests_registry.core.drafting.undo_proposals import Proposal

WIDTH: Final = 100
DESCRIPTION_LIMIT: Final = 600
NAME_LIMIT: Final = 80
MOST_LEFT_OUT: Final = 100
# Half of what a file of manifests may hold, and a reviewer would rather have less.
DOCUMENT_LIMIT_BYTES: Final = 512 * 1024

_PLAIN: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.:/-]*[A-Za-z0-9_-])?")
# What some reader of YAML, though not ours, takes for something else than a text.
_SPECIAL: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})


def write_documents(upstream: str, entries: Sequence[str], left_out: Sequence[LeftOut]) -> tuple[str, ...]:
    """Put entries into as few documents as may be, the tools without a draft named at the end of the last."""
    parts: list[list[str]] = []
    size = 0
    for entry in entries:
        size += len(entry.encode())
        if not parts or size > DOCUMENT_LIMIT_BYTES:
            parts.append([])
            size = len(entry.encode())
        parts[-1].append(entry)
    documents = [f"{_header(upstream)}\n" + "\n".join(part) for part in parts]
    tail = "".join(f"{line}\n" for line in _left_out_lines(left_out))
    return (*documents[:-1], documents[-1] + tail) if documents else ()


def _header(upstream: str) -> str:
    lines = (
        f"Drafts for the tools of {shown(upstream, limit=NAME_LIMIT)}, from what that server says about itself.",
        "Beside what is guessed, or only the server's claim, a comment says so; descriptions are the server's words.",
        "A draft is blocked in enforce mode and only recorded in observe mode. Correct each entry, then set its status",
        "to approved and delete the comments. docs/writing-manifests.md says what the fields mean.",
    )
    return "".join(f"# {line}\n" for line in lines)


def _left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    if left_out:
        yield ""
        yield "# Without a draft:"
    for tool in left_out[:MOST_LEFT_OUT]:
        yield f"#   {quoted(shown(tool.name, limit=NAME_LIMIT))}: {tool.reason}"
    if len(left_out) > MOST_LEFT_OUT:
        yield f"#   and {len(left_out) - MOST_LEFT_OUT} more"


def write_entry(tool: OfferedTool, judgement: Judgement, proposal: Proposal | None, *, upstream: str) -> str:
    """Write one draft as an entry of a list of manifests."""
    return "".join(f"{line}\n" for line in _entry(tool, judgement, proposal, upstream))


def _entry(tool: OfferedTool, judgement: Judgement, proposal: Proposal | None, upstream: str) -> Iterator[str]:
    right = "read" if judgement.is_reading else "write"
    yield f"- tool: {scalar(tool.name)}"
    yield from _description(tool.description)
    yield f"  effect: {judgement.effect.value} # {judgement.reason}"
    if judgement.unused_hints:
        yield f"  # the server also hints: {judgement.unused_hints}; a hint makes no effect weaker"
    if not judgement.is_reading:
        yield "  approval: always # follows from irreversible"
    yield f"  permission: {scalar(f'{upstream}:{right}')} # guessed from the name of the server"
    yield "  status: draft # nothing here was reviewed yet"
    if tool.schema_hash is not None:
        yield f"  schema_hash: {tool.schema_hash} # its input schema as it was listed"
    if proposal is not None:
        yield from _proposed(proposal)


def _proposed(proposal: Proposal) -> Iterator[str]:
    reason = f"{proposal.reason}. If that is so, put this in place of effect and approval, complete and checked:"
    yield from (f"  # {line}" for line in textwrap.wrap(reason, WIDTH))
    yield from (f"  # {line}" for line in proposal.lines)


def _description(text: str) -> Iterator[str]:
    whole = shown(text, limit=len(text) * 10 + 1)
    if not whole:
        return
    cut = whole if len(whole) <= DESCRIPTION_LIMIT else f"{whole[: DESCRIPTION_LIMIT - 1].rstrip()}…"
    remark = "" if cut == whole else " # shortened"
    line = f"  description: {quoted(cut)}{remark}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"  description: >-{remark}"
    # Only where a single space stands may a folded block be broken; that is where it is joined again.
    yield from (f"    {part}" for part in textwrap.wrap(cut, WIDTH, break_long_words=False, break_on_hyphens=False))


def shown(text: str, *, limit: int) -> str:
    """Return a text on one line, what is not printable by its number, cut at `limit` characters."""
    line = re.sub(r"[ \t\r\n\u00a0]+", " ", text).strip(" ")
    visible = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in line)
    return visible if len(visible) <= limit else f"{visible[: limit - 1]}…"


def scalar(text: str) -> str:
    """Write a name: as it is where every reader of YAML takes it for a text, else quoted."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _SPECIAL else quoted(text)


def quoted(text: str) -> str:
    """Write printable text in double quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
