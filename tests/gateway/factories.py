"""Make calls through the gateway's operation; every argument is by keyword."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from gateway.operations.calls import CallResult, call
from tests.approvals.factories import ARGS, NOW, PRINCIPAL
from tests.manifests_registry.factories import shop


class SteppingClock:
    """Moves on by a millisecond each time it is asked, and by what is slept."""

    def __init__(self) -> None:
        self._now = NOW
        self.slept: list[float] = []

    def now(self) -> datetime:
        self._now += timedelta(milliseconds=1)
        return self._now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += timedelta(seconds=seconds)


class Tool:
    """A tool that answers, or raises, what it was given, in turn; the last answer stays."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.sent: list[tuple[Mapping[str, Any], str | None]] = []

    def __call__(self, args: dict[str, Any], key: str | None) -> Any:
        self.sent.append((dict(args), key))
        args.clear()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def make_call(*, run_id: str, execute: Callable[[dict[str, Any], str | None], Any], **fields: Any) -> CallResult:
    usual: dict[str, Any] = {"principal": PRINCIPAL, "clock": SteppingClock(), "snapshot": shop()}
    tool, args = fields.pop("tool", "shop.order"), fields.pop("args", ARGS)
    return call(run_id, tool, args, execute=execute, **{**usual, **fields})
