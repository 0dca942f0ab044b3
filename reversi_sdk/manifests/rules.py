"""What must hold between the fields of one manifest, whichever form its effect has.

A rule looks at what the tables could read and notes what contradicts. Rules of D4 carry their code. Whether a tool
takes an idempotency key can be settled by its input schema alone (D41 b), so `effect/lookup_without_idempotency_key`
is never certain from a manifest and is judged where the schema is known; so are the rows about other tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from reversi_sdk.canonical import Path
from reversi_sdk.manifests.fields import FORM_FIELDS
from reversi_sdk.manifests.mapped import ROOT_NOT_ALLOWED, texts
from reversi_sdk.manifests.places import Part, Place, is_contract, places_of
from reversi_sdk.manifests.report import Report
from reversi_sdk.references import (
    MapValue,
    Reference,
    Root,
    Spelling,
    read_expected_value,
    read_map_value,
    references_of,
)

Rule = Callable[[Mapping[str, Any], Report], None]

OPERATION_SELF: Final = "effect/operation_self"
LOOKUP_KEY_UNUSED: Final = "effect/lookup_key_unused"

_UNDONE: Final = ("reversible", "compensable")
_REPEATABLE: Final = ("read_only", "idempotent")


def effect_word(manifest: Mapping[str, Any]) -> str | None:
    """The flat word for a manifest's effect, in either form; None when it could not be read."""
    effect = manifest.get("effect")
    if isinstance(effect, dict):
        effect = effect.get("class")
    return "read_only" if effect == "read" else effect


def check_one_form(manifest: Mapping[str, Any], report: Report) -> None:
    """A contract block and the flat fields do not mix."""
    for name in FORM_FIELDS if is_contract(manifest) else ():
        if name in manifest:
            report.add((name,), "a manifest uses one form: beside an effect block this belongs inside it")


def check_flat_compensation(manifest: Mapping[str, Any], report: Report) -> None:
    """Reversible and compensable tools declare a compensation, the others must not."""
    effect = effect_word(manifest)
    if is_contract(manifest) or effect is None:
        return
    if effect in _UNDONE and "compensation" not in manifest and not report.is_spoiled(("compensation",)):
        report.add(("compensation",), f"is required: a {effect} tool says how it is undone")
    if effect not in _UNDONE and "compensation" in manifest:
        report.add(("compensation",), f"does not belong here: effect {effect} has no compensation")


def check_kind(manifest: Mapping[str, Any], report: Report) -> None:
    """An inverse leaves nothing behind."""
    for place in places_of(manifest):
        if place.data.get("kind") == "inverse" and place.data.get("residue"):
            report.add((*place.path, "residue"), "an inverse cannot list residue: it restores the exact prior state")


def check_approval(manifest: Mapping[str, Any], report: Report) -> None:
    """Irreversible tools always need a person; a quorum and an escalation need someone to ask."""
    approval = manifest.get("approval")
    if effect_word(manifest) == "irreversible" and approval == "never":
        report.add(("approval",), "an irreversible tool always needs approval")
    if not isinstance(approval, dict):
        return
    if effect_word(manifest) == "irreversible" and approval.get("required") is False:
        report.add(("approval", "required"), "an irreversible tool always needs approval")
    if approval.get("quorum", 1) > 1 and not approval.get("roles"):
        report.add(("approval", "quorum"), "a quorum above 1 needs roles")
    if approval.get("on_timeout") == "escalate" and not approval.get("escalate_to"):
        report.add(("approval", "on_timeout"), "escalate needs escalate_to")


def check_requires(manifest: Mapping[str, Any], report: Report) -> None:
    """A tool requires others."""
    for number, entry in enumerate(manifest.get("requires", ())):
        if isinstance(entry, dict) and "tool" in entry and entry["tool"] == manifest.get("tool"):
            report.add(("requires", number), "a tool cannot require itself")


def check_retry(manifest: Mapping[str, Any], report: Report) -> None:
    """Repeating a call is harmless for some effects only."""
    effect = effect_word(manifest)
    if "retry" in manifest and effect is not None and effect not in _REPEATABLE:
        report.add(("retry",), "is only for read_only and idempotent tools: repeating another could repeat its effect")


def check_replaced_by(manifest: Mapping[str, Any], report: Report) -> None:
    """Another tool takes the place of a deprecated one."""
    if "replaced_by" in manifest and manifest["replaced_by"] == manifest.get("tool"):
        report.add(("replaced_by",), "a tool cannot replace itself")


def check_self(manifest: Mapping[str, Any], report: Report) -> None:
    """A follow-up is another tool, unless the tool says that it is its own inverse (D36)."""
    tool = manifest.get("tool")
    if tool is None:
        return
    before = manifest.get("before", {})
    if before.get("tool") == tool:
        report.add(("before", "tool"), "a tool cannot be its own read")
    for place in places_of(manifest):
        _check_place(place, tool, report)


def _check_place(place: Place, tool: str, report: Report) -> None:
    named = place.data.get(place.tool_field)
    is_self, claims = named == tool, place.data.get("self_inverse") is True
    if is_self and not claims and place.part is not Part.DRAFT:
        report.add((*place.path, place.tool_field), _SELF_MESSAGES.get(place.part, _SELF), OPERATION_SELF)
    if claims and not is_self and named is not None:
        report.add((*place.path, "self_inverse"), "is for an undo by the tool itself")
    if place.data.get("repeatable") and not claims:
        report.add((*place.path, "repeatable"), "is for an undo with self_inverse: true")


_SELF: Final = "a tool cannot be its own follow-up"
_SELF_MESSAGES: Final = {
    Part.UNDO: "a tool cannot compensate itself; one that is its own inverse says self_inverse: true",
    Part.WHEN_ABSENT: "a tool cannot compensate itself",
    Part.VERIFICATION: "a tool that changes something cannot be its own read-back",
}


def check_before_is_declared(manifest: Mapping[str, Any], report: Report) -> None:
    """What reads the value before needs the read that finds it."""
    if "before" in manifest or report.is_spoiled(("before",)):
        return
    for place in places_of(manifest):
        for path, value in _values(place):
            reads_before = any(reference.root is Root.BEFORE for reference in references_of(value))
            if reads_before and not report.is_spoiled(path):
                report.add(path, "reads the value before, but the manifest declares no before", ROOT_NOT_ALLOWED)


def _values(place: Place) -> Iterator[tuple[Path, MapValue]]:
    for name, source in texts(place.data.get(place.map_field, {})):
        value, _ = read_map_value(source, spelling=place.spelling)
        if value is not None:
            yield (*place.path, place.map_field, name), value
    for name, source in texts(place.data.get("among", {})):
        value, _ = read_map_value(source, spelling=place.spelling)
        if value is not None:
            yield (*place.path, "among", name), value
    for name, source in texts(place.data.get("expect", {})):
        value, _ = read_expected_value(source, spelling=place.spelling)
        if value is not None:
            yield (*place.path, "expect", name), value


def check_when_absent(manifest: Mapping[str, Any], report: Report) -> None:
    """An undo for an absent thing needs a way to tell that it was absent (D35)."""
    if "absent_when" in manifest.get("before", {}) or report.is_spoiled(("before",)):
        return
    for place in places_of(manifest):
        if place.part is Part.WHEN_ABSENT:
            report.add(place.path, "needs before.absent_when, which tells when the thing did not exist")


def check_absent_when(manifest: Mapping[str, Any], report: Report) -> None:
    """A path tells something only together with the value that stands there."""
    absent = manifest.get("before", {}).get("absent_when", {})
    if report.is_spoiled(("before", "absent_when")):
        return
    place = ("before", "absent_when", "equals")
    if "path" in absent and "equals" not in absent:
        report.add(place, "is required beside path")
    if "equals" in absent and "path" not in absent:
        report.add(place, "stands only beside path")


def check_lookup(manifest: Mapping[str, Any], report: Report) -> None:
    """A look-up by key sends the key and cannot read the answer that it stands in for."""
    for place in places_of(manifest):
        if place.part is not Part.LOOKUP or place.data.get("by") != "idempotency_key":
            continue
        arguments = (*place.path, place.map_field)
        if not report.is_spoiled(arguments) and not any(_is_key(value) for _, value in _values(place)):
            message = f"no argument is exactly {_KEY_TEXTS[place.spelling]}, so the look-up does not send the key"
            report.add(arguments, message, LOOKUP_KEY_UNUSED)
        _check_key_roots(place, report)


def _check_key_roots(place: Place, report: Report) -> None:
    for path, value in _values(place):
        if any(reference.root is Root.RESULT for reference in references_of(value)):
            allowed = ", ".join(_KEY_ROOTS[place.spelling])
            report.add(path, f"a look-up by key cannot read the lost answer; allowed: {allowed}", ROOT_NOT_ALLOWED)


_KEY_TEXTS: Final = {Spelling.FLAT: "$idempotency_key", Spelling.CONTRACT: "idempotency_key"}
_KEY_ROOTS: Final = {
    Spelling.FLAT: ("$args", "$idempotency_key"),
    Spelling.CONTRACT: ("request", "idempotency_key"),
}


def _is_key(value: MapValue) -> bool:
    return isinstance(value, Reference) and value.root is Root.IDEMPOTENCY_KEY and not value.is_optional


RULES: Final[tuple[Rule, ...]] = (
    check_one_form,
    check_flat_compensation,
    check_kind,
    check_approval,
    check_requires,
    check_retry,
    check_replaced_by,
    check_self,
    check_before_is_declared,
    check_when_absent,
    check_absent_when,
    check_lookup,
)
