"""What a tool's call is taken to do, from the server's annotations, and never weaker than they all allow."""

from __future__ import annotations

from dataclasses import dataclass

from manifests_registry.core.drafting.names import words_of
from manifests_registry.core.drafting.offers import Hints, OfferedTool
from reversi_sdk.model import Effect


@dataclass(frozen=True, slots=True)
class Judgement:
    """The effect of a draft, why it is that, and what the server also hints at, which changes nothing."""

    effect: Effect
    reason: str
    unused_hints: str = ""

    @property
    def is_reading(self) -> bool:
        """Whether the tool is drafted as one that changes nothing."""
        return self.effect is Effect.READ_ONLY


def judge(tool: OfferedTool) -> Judgement:
    """Draft the effect: reading only where the server says so and nothing speaks against it."""
    verb = words_of(tool.name).changing_verb
    match tool.hints:
        case Hints(read_only=True, destructive=True):
            return _changing(tool, "annotations contradict each other: readOnlyHint and destructiveHint are both true")
        case Hints(read_only=True) if verb is not None:
            return _changing(tool, f'annotations say readOnlyHint true, but the name says "{verb}": taken as changing')
        case Hints(read_only=True):
            reason = "from annotations: readOnlyHint true, the server's own claim; check that nothing is changed"
            return Judgement(Effect.READ_ONLY, reason)
        case Hints(read_only=False):
            return _changing(tool, "from annotations: readOnlyHint false; nothing is known that takes it back")
        case _:
            return _changing(tool, "no annotation says that it only reads, so it is taken as changing")


def _changing(tool: OfferedTool, reason: str) -> Judgement:
    return Judgement(Effect.IRREVERSIBLE, reason, _unused(tool.hints))


def _unused(hints: Hints) -> str:
    given = {"destructiveHint": hints.destructive, "idempotentHint": hints.idempotent}
    return ", ".join(f"{name} {str(value).lower()}" for name, value in given.items() if value is not None)
