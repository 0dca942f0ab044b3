"""Which places of a call its follow-ups read: the only ones whose values outlive it (D14)."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.core.handles import BeforeRead
from reversi_sdk.model import Manifest, Undo
from reversi_sdk.references import MapValue, Reference, Root, references_of
from reversi_sdk.templates import Template, parse_template

TOUCH_ROOTS = frozenset({Root.ARGS.value, Root.RESULT.value})


def chosen_undo(manifest: Manifest, read: BeforeRead) -> Undo | None:
    """Return the undo that serves: what did not exist before is undone by `when_absent`, where that is declared."""
    undo = manifest.undo
    if undo is not None and read is BeforeRead.ABSENT and undo.when_absent is not None:
        return undo.when_absent
    return undo


def required_references(manifest: Manifest, read: BeforeRead) -> tuple[Reference, ...]:
    """Return what the serving undo and its read-back cannot do without."""
    undo = chosen_undo(manifest, read)
    if undo is None:
        return ()
    maps = [*undo.arguments.items(), *_verification(undo)]
    return tuple(reference for _, value in maps for reference in references_of(value) if not reference.is_optional)


def references_to(manifest: Manifest, root: Root) -> tuple[Reference, ...]:
    """Return the places under a root that any follow-up names, each key once."""
    found = (reference for _, value in named_values(manifest, root) for reference in references_of(value))
    named = [*found, *_moments(manifest.undo), *_touched(manifest)]
    return tuple({reference.key: reference for reference in named if reference.root is root}.values())


def touch_templates(manifest: Manifest) -> tuple[Template, ...] | None:
    """Return the templates of the names a call touches; None where none are declared."""
    if manifest.touches is None:
        return None
    return tuple(parse_template(text, roots=TOUCH_ROOTS) for text in manifest.touches)


def _touched(manifest: Manifest) -> Iterator[Reference]:
    # Names that read the result are rendered when it arrives, and the arguments are gone by then.
    templates = touch_templates(manifest) or ()
    if any(reference.root is Root.RESULT for template in templates for reference in template.references):
        yield from (reference for template in templates for reference in template.references)


def named_values(manifest: Manifest, root: Root) -> Iterator[tuple[str, MapValue]]:
    """Yield what the follow-ups are called with, and what their answers must show, where that may read the root."""
    yield from _undo(manifest.undo)
    # The read is made once more before the undo, to see whether newer work stands there (D23).
    if manifest.before is not None:
        yield from manifest.before.arguments.items()
        yield from manifest.before.among.items()
    if manifest.lookup is not None:
        yield from manifest.lookup.arguments.items()
    draft = manifest.draft
    # What promoting and discarding read of a result is the draft's, not this call's.
    if draft is not None and root is not Root.RESULT:
        yield from draft.arguments.items()
        for call in (draft.promote, draft.discard):
            yield from call.arguments.items() if call is not None else ()


def _undo(undo: Undo | None) -> Iterator[tuple[str, MapValue]]:
    if undo is None:
        return
    yield from undo.arguments.items()
    yield from _verification(undo)
    yield from _undo(undo.when_absent)
    yield from _undo(undo.fallback)


def _verification(undo: Undo) -> Iterator[tuple[str, MapValue]]:
    if undo.verification is not None:
        yield from undo.verification.arguments.items()
        yield from undo.verification.among.items()
        yield from undo.verification.expect.items()


def _moments(undo: Undo | None) -> Iterator[Reference]:
    """Yield where the result names the ends of undo windows."""
    if undo is None:
        return
    if undo.deadline is not None and undo.deadline.at is not None:
        yield undo.deadline.at
    yield from _moments(undo.when_absent)
    yield from _moments(undo.fallback)
