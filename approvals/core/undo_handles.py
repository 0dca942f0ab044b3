"""Build the undo handle: at intent from arguments and the state before, at completion with the result added (D14).

A value that is missing, or that JSON cannot hold, is left out and never guessed; when the serving undo needs it, the
step is unrecoverable and says which argument lacks what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from approvals.core.before import Captured
from approvals.core.follow_ups import chosen_undo, references_to, touch_templates
from approvals.core.results import as_json, is_storable
from ledger.core.handles import Handle
from reversi_sdk.model import Manifest
from reversi_sdk.references import Found, Missing, Reference, Root, Unavailable, look_up, resolve
from reversi_sdk.templates import Template, TemplateUnavailable, render_template

_RESULT = f"${Root.RESULT.value}."


def handle_at_intent(manifest: Manifest | None, args: Mapping[str, Any], captured: Captured) -> Handle:
    """Return what must be kept of a call before it is made; nothing for a call without an approved manifest."""
    if manifest is None:
        return Handle()
    roots = {Root.ARGS: args, **captured.roots}
    named = [*references_to(manifest, Root.ARGS), *references_to(manifest, Root.BEFORE)]
    handle = Handle(values=dict(_values(named, roots)), before=captured.read)
    return replace(handle, touches=_touches(manifest, roots))


def handle_with_result(manifest: Manifest, handle: Handle, result: Any) -> Handle:
    """Return the handle with the values named in the result, in the place of an earlier result's."""
    roots = {Root.RESULT: as_json(result)}
    kept = {key: value for key, value in handle.values.items() if not key.startswith(_RESULT)}
    values = {**kept, **dict(_values(references_to(manifest, Root.RESULT), roots))}
    touches = _touches(manifest, roots, values) if _reads_result(manifest) else handle.touches
    return replace(handle, values=values, touches=touches)


def missing_at_intent(manifest: Manifest | None, handle: Handle) -> str | None:
    """Say what the undo will lack whatever the call returns."""
    return _missing(manifest, handle, lambda reference: reference.root is Root.RESULT)


def missing_after(manifest: Manifest | None, handle: Handle) -> str | None:
    """Say what the undo lacks now that the call has ended."""
    return _missing(manifest, handle, lambda reference: False)


def _missing(manifest: Manifest | None, handle: Handle, is_awaited: Callable[[Reference], bool]) -> str | None:
    undo = None if manifest is None else chosen_undo(manifest, handle.before)
    if manifest is None or undo is None:
        return None

    def find(reference: Reference) -> Found | Missing:
        return Found("") if is_awaited(reference) else handle.find(reference)

    # A fallback serves where the undo itself cannot be built (D5).
    fallback = manifest.undo.fallback if manifest.undo is not None else None
    built = [resolve(each.arguments, find) for each in (undo, fallback) if each is not None]
    gaps = [found.reason for found in built if isinstance(found, Unavailable)]
    return gaps[0] if len(gaps) == len(built) else None


def _values(references: Iterable[Reference], roots: Mapping[Root, Any]) -> Iterator[tuple[str, Any]]:
    for reference in references:
        found = look_up(reference, roots)
        if isinstance(found, Found) and is_storable(found.value):
            yield reference.key, found.value


def _reads_result(manifest: Manifest) -> bool:
    templates = touch_templates(manifest) or ()
    return any(reference.root is Root.RESULT for template in templates for reference in template.references)


def _touches(
    manifest: Manifest, roots: Mapping[Root, Any], kept: Mapping[str, Any] | None = None
) -> tuple[str, ...] | None:
    templates = touch_templates(manifest)
    if templates is None:
        return None
    try:
        return tuple(dict.fromkeys(_rendered(template, roots, kept or {}) for template in templates))
    except TemplateUnavailable:
        return None


def _rendered(template: Template, roots: Mapping[Root, Any], kept: Mapping[str, Any]) -> str:
    return "".join(part if isinstance(part, str) else _part(part, roots, kept) for part in template.parts)


def _part(reference: Reference, roots: Mapping[Root, Any], kept: Mapping[str, Any]) -> str:
    found = Found(kept[reference.key]) if reference.key in kept else look_up(reference, roots)
    if isinstance(found, Missing):
        raise TemplateUnavailable(source=reference.text, problem="names nothing")
    alone = replace(reference, path=("value",))
    return render_template(Template((alone,)), {reference.root: {"value": found.value}})
