"""Every field of a manifest, as data (D1).

The validator reads by these tables and the JSON Schema is written from them. Both forms of an effect stand here:
the flat form's `compensation`, `lookup` and `draft`, and the contract block of D2 with its own spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reversi_sdk.durations import MAX_MS, UNITS_MS
from reversi_sdk.manifests.mapped import (
    AnswerPath,
    ArgumentMap,
    ChosenItems,
    Expectations,
    ReferenceText,
    TemplateText,
)
from reversi_sdk.manifests.shapes import (
    Either,
    Field,
    Fields,
    Flag,
    Free,
    ListOf,
    OneOrMany,
    Requirement,
    Span,
    Text,
    Whole,
    Word,
)
from reversi_sdk.references import Root, Spelling

OPERATION_MISSING: Final = "effect/operation_missing"
DEADLINE_SHAPE: Final = "effect/deadline_shape"
DEADLINE_PATH: Final = "effect/deadline_path"
DRAFT_HANDLE: Final = "effect/draft_handle"

TOOL_PATTERN: Final = r"(?!(?:[^/]*/)*\.{0,2}(?:/|(?![\s\S])))[A-Za-z0-9_.:/-]{1,128}"
_TOOL_RULE: Final = (
    "a tool name has letters, digits and _ . : / -, up to 128, and no empty, . or .. part between slashes"
)
EFFECT_WORDS: Final = ("read_only", "idempotent", "reversible", "compensable", "irreversible")
CLASS_WORDS: Final = ("read", "reversible", "compensable", "irreversible")
UNDO_ROOTS: Final = (Root.ARGS, Root.RESULT, Root.BEFORE)
ABSENT_ROOTS: Final = (Root.ARGS, Root.RESULT)
LOOKUP_ROOTS: Final = (Root.ARGS, Root.RESULT, Root.IDEMPOTENCY_KEY)

_BLANK: Final = r"[\s\S]*\S[\s\S]*"
_SAFE: Final = 2**53 - 1
_FLAT: Final = Spelling.FLAT
_CONTRACT: Final = Spelling.CONTRACT

TOOL: Final = Text(TOOL_PATTERN, _TOOL_RULE)
OPERATION: Final = Text(TOOL_PATTERN, _TOOL_RULE, OPERATION_MISSING)
FREE_TEXT: Final = Text()
NAME: Final = Text(_BLANK, "cannot be blank")
NO_SPACES: Final = Text(r"\S+", "must be a text without whitespace")
LONG_ENOUGH: Final = Span(least_ms=1)


def _tool(spelling: Spelling, about: str, *, is_aliased: bool = False) -> dict[str, Field]:
    if spelling is _FLAT:
        return {"tool": Field(TOOL, about, is_required=True)}
    alias = "tool" if is_aliased else None
    return {"operation": Field(OPERATION, about, is_required=True, alias=alias, code=OPERATION_MISSING)}


def _looking(chosen: ChosenItems) -> dict[str, Field]:
    about = "Lists of the answer of which only the items count that stand in the list named here (D108)"
    return {
        "among": Field(chosen, about),
        "unordered": Field(Flag(), "Whether the order of lists in the answer means nothing (D108)", omitted=False),
    }


def _verification(spelling: Spelling, roots: tuple[Root, ...]) -> Field:
    fields = (
        _tool(spelling, "A read-only tool, called after the undo", is_aliased=True)
        | {
            "arguments": Field(ArgumentMap(spelling, roots), "Where its arguments come from", default={}),
            "expect": Field(
                Expectations(spelling, roots), "Paths of the answer and what they must hold", is_required=True
            ),
            "retries": Field(Whole(1, 10), "How often to read", default=3),
            "backoff_ms": Field(Span(), "Wait between reads, doubled each time", default=1000),
        }
        | _looking(ChosenItems(spelling, roots))
    )
    return Field(Fields(fields, "Verification"), "Read back the result of the undo before it counts as done")


def _deadline(spelling: Spelling) -> Field:
    moment = ReferenceText(spelling, (Root.RESULT,), DEADLINE_PATH)
    fields = {
        "within_ms": Field(Span(), "How long after the answer the undo works"),
        "at": Field(moment, "Where the result names the time until which it works"),
    }
    shape = Fields(fields, "Deadline", ("within_ms", "at"), DEADLINE_SHAPE)
    return Field(shape, "Until when the undo works (D5)")


def _arguments_name(spelling: Spelling) -> str:
    return "argument_map" if spelling is _FLAT else "arguments"


def _undo(spelling: Spelling, roots: tuple[Root, ...]) -> dict[str, Field]:
    return {
        "residue": Field(OneOrMany(ListOf(NAME)), "What the undo cannot take back, in plain words"),
        "requires_approval": Field(Flag(), "Whether a person must approve running the undo", default=False),
        "timeout_ms": Field(LONG_ENOUGH, "Longest the undo may take"),
        "verification": _verification(spelling, roots),
    }


def _when_absent(spelling: Spelling) -> Field:
    arguments = Field(
        ArgumentMap(spelling, ABSENT_ROOTS),
        "Where its arguments come from",
        default={},
        alias=None if spelling is _FLAT else "argument_map",
    )
    fields = _tool(spelling, "The tool that undoes a creation", is_aliased=True)
    fields |= {_arguments_name(spelling): arguments} | _undo(spelling, ABSENT_ROOTS)
    return Field(Fields(fields, "WhenAbsent"), "The undo when the thing did not exist before (D35)")


def _follow_up(spelling: Spelling) -> dict[str, Field]:
    arguments = Field(ArgumentMap(spelling, UNDO_ROOTS), "Where the undo's arguments come from", default={})
    return (
        _tool(spelling, "The tool that undoes this one")
        | {_arguments_name(spelling): arguments}
        | ({"kind": _KIND} if spelling is _FLAT else {})
        | _undo(spelling, UNDO_ROOTS)
        | {
            "deadline": _deadline(spelling),
            "when_absent": _when_absent(spelling),
            "self_inverse": Field(Flag(), "The tool is its own inverse (D36)", omitted=False),
            "repeatable": Field(Flag(), "A self-inverse undo may be repeated safely (D23)", omitted=False),
        }
    )


_KIND: Final = Field(
    Word(("compensation", "inverse")), "Makes amends, or restores the exact prior state", default="compensation"
)


def _lookup(spelling: Spelling) -> Field:
    fields = _tool(spelling, "A read that finds the effect") | {
        "by": Field(Word(("idempotency_key", "id")), "What it finds the effect by", is_required=True),
        "arguments": Field(ArgumentMap(spelling, LOOKUP_ROOTS), "Where its arguments come from", default={}),
        "result_map": Field(ArgumentMap(spelling, (Root.LOOKUP,)), "How its answer becomes the result"),
        "settle_after": Field(Span(), "How long an empty answer proves nothing"),
        "valid_for": Field(Span(), "After how long an empty answer proves nothing any more"),
    }
    return Field(Fields(fields, "Lookup"), "How to find the effect when the answer was lost (D25)")


def _draft_call(spelling: Spelling, about: str, *, is_required: bool) -> Field:
    fields = _tool(spelling, "The tool to call") | {
        "arguments": Field(ArgumentMap(spelling, ABSENT_ROOTS), "Where its arguments come from", default={}),
    }
    return Field(Fields(fields, "DraftCall"), about, is_required=is_required)


def _draft(spelling: Spelling) -> Field:
    handle = ReferenceText(spelling, (Root.RESULT,), DRAFT_HANDLE)
    fields = _tool(spelling, "The tool that makes the draft") | {
        "arguments": Field(ArgumentMap(spelling, (Root.ARGS,)), "Where its arguments come from", default={}),
        "handle": Field(handle, "Where the draft's answer names it", is_required=True, code=DRAFT_HANDLE),
        "promote": _draft_call(spelling, "The call that performs the real effect", is_required=True),
        "discard": _draft_call(spelling, "The call that throws the draft away", is_required=False),
    }
    return Field(Fields(fields, "Draft"), "The draft form of this tool (D20)")


def _before(spelling: Spelling) -> Field:
    absent = Fields(
        {
            "path": Field(AnswerPath(), "The path of the answer that tells"),
            "equals": Field(Free(), "What stands there when the thing does not exist"),
            "error": Field(NAME, "A glob on the error text when the thing does not exist"),
        },
        "AbsentWhen",
        ("path", "error"),
    )
    unusable = Fields(
        {
            "path": Field(AnswerPath(), "The path of a text in the answer", is_required=True),
            "glob": Field(NAME, "What the text looks like when nothing can be restored from it", is_required=True),
        },
        "UnusableWhen",
    )
    is_mixed = spelling is _CONTRACT
    arguments = ArgumentMap(spelling, (Root.ARGS,), is_mixed=is_mixed)
    fields = {
        "tool": Field(TOOL, "A read-only tool, called just before", is_required=True),
        "arguments": Field(arguments, "Where its arguments come from", default={}),
        "on_missing": Field(Word(("refuse", "proceed")), "What to do when the value is missing", omitted="refuse"),
        "absent_when": Field(absent, "How the answer says that the thing does not exist"),
        "unusable_when": Field(unusable, "How the answer shows that nothing can be restored from it (D108)"),
    } | _looking(ChosenItems(spelling, (Root.ARGS,), is_mixed=is_mixed))
    return Field(Fields(fields, "Before"), "The read whose values read as $before (D35)")


def _approval() -> Field:
    names = OneOrMany(ListOf(NAME))
    fields = {
        "required": Field(Flag(), "False means never"),
        "roles": Field(names, "An approver holds one of these roles"),
        "quorum": Field(Whole(1, 10), "How many must agree; more than one needs roles"),
        "timeout": Field(LONG_ENOUGH, "How long to wait"),
        "on_timeout": Field(Word(("deny", "escalate")), "What happens then"),
        "escalate_to": Field(names, "The roles asked after the timeout"),
    }
    return Field(Either(Word(("never", "always")), Fields(fields, "Approval")), "Who must agree before a call runs")


def _requires() -> Field:
    fields = {
        "tool": Field(TOOL, "The tool", is_required=True),
        "status": Field(Word(("succeeded",)), "How it must stand", default="succeeded"),
    }
    return Field(ListOf(Requirement(Fields(fields))), "Tools that must have succeeded earlier in the run")


def _key_carrier() -> Field:
    fields = {
        "argument": Field(NAME, "The argument that takes the key"),
        "meta": Field(Flag(only_true=True), "The call's metadata takes it"),
    }
    return Field(Fields(fields, "KeyCarrier", ("argument", "meta")), "How the tool takes an idempotency key (D41)")


_RETRY: Final = Fields(
    {
        "attempts": Field(Whole(1, 10), "How often in all", default=3),
        "base_ms": Field(Span(), "The first wait", default=200),
        "max_ms": Field(Span(), "The longest wait", default=5000),
    },
    "Retry",
)
_RISK: Final = Fields(
    {
        "data_class": Field(FREE_TEXT, "Such as pii or financial"),
        "blast_radius": Field(Word(("low", "medium", "high", "critical")), "How far damage reaches"),
        "environment": Field(FREE_TEXT, "Recorded only"),
    },
    "Risk",
)
_IDEMPOTENCY: Final = Fields(
    {
        "key": Field(TemplateText({"args"}, needs_field=True), "A template over the arguments", is_required=True),
        "scope": Field(Word(("run", "actor", "global")), "How far the key reaches", default="run"),
    },
    "Idempotency",
)


def _audit(spelling: Spelling) -> Field:
    redacted = ReferenceText(spelling, UNDO_ROOTS, is_mixed=spelling is _CONTRACT)
    fields = {
        "retention_days": Field(Whole(1, MAX_MS // UNITS_MS["d"]), "How long to keep the data"),
        "evidence_export": Field(Word(("required", "optional")), "Whether the run is exported when it ends"),
        "redaction": Field(ListOf(redacted), "Paths that are never shown"),
    }
    return Field(Fields(fields, "Audit"), "What is kept, hidden and exported")


FALLBACK: Final = Field(
    Fields(_follow_up(_FLAT), "Fallback"),
    "The undo after the deadline, or when the first is withheld",
)
COMPENSATION: Final = Field(
    Fields(_follow_up(_FLAT) | {"fallback": FALLBACK}, "Compensation"), "How the call is undone"
)
CONTRACT_BLOCK: Final = Fields(
    {
        "class": Field(Word(CLASS_WORDS), "What a call does to the world", default="irreversible"),
        "inverse": Field(Fields(_follow_up(_CONTRACT), "Inverse"), "The call that restores the world as it was"),
        "compensate": Field(Fields(_follow_up(_CONTRACT), "Compensate"), "The call that makes amends"),
        "lookup": _lookup(_CONTRACT),
        "draft": _draft(_CONTRACT),
        "reversible": Field(Flag(), "The older boolean; must agree with the class"),
    },
    "EffectContract",
)
FORM_FIELDS: Final = ("compensation", "lookup", "draft")
FIELDS: Final[Mapping[str, Field]] = {
    "tool": Field(TOOL, "The tool's name", is_required=True),
    "effect": Field(Either(Word(EFFECT_WORDS), CONTRACT_BLOCK), "What a call does to the world", is_required=True),
    "permission": Field(NO_SPACES, "The permission a run's scope must contain", is_required=True),
    "description": Field(FREE_TEXT, "What the tool does, for reviewers"),
    "approval": _approval(),
    "compensation": COMPENSATION,
    "requires": _requires(),
    "version": Field(Whole(1, _SAFE), "The version of this manifest", default=1),
    "status": Field(Word(("draft", "approved", "deprecated")), "Where it stands in its life", default="approved"),
    "replaced_by": Field(TOOL, "The tool to use instead of a deprecated one"),
    "owner": Field(FREE_TEXT, "Who to ask"),
    "oncall": Field(FREE_TEXT, "Who to ask at night"),
    "risk": Field(_RISK, "What a mistake would cost"),
    "timeout_ms": Field(LONG_ENOUGH, "Longest the gateway waits"),
    "retry": Field(_RETRY, "How a harmless call is repeated"),
    "idempotency": Field(_IDEMPOTENCY, "Which calls are duplicates"),
    "key_carrier": _key_carrier(),
    "audit": _audit(_CONTRACT),
    "schema_hash": Field(NO_SPACES, "Hash of the tool's input schema when this was written"),
    "before": _before(_CONTRACT),
    "touches": Field(ListOf(TemplateText({"args", "result"}), least=1), "Names of what a call changes (D22)"),
    "lookup": _lookup(_FLAT),
    "draft": _draft(_FLAT),
    "summary": Field(TemplateText({"args"}), "One line that says what a call does (D14)"),
    "observed_by": Field(Word(("gateway",)), "Who must have seen the result (D14)"),
    "compensation_only": Field(Flag(), "Only rollback may call this tool (D38)", omitted=False),
}
# Outside its block a contract manifest may use either spelling, a flat one only its own.
CONTRACT_MANIFEST: Final = Fields(FIELDS, "Manifest")
FLAT_MANIFEST: Final = Fields({**FIELDS, "before": _before(_FLAT), "audit": _audit(_FLAT)}, "Manifest")
