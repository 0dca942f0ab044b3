"""Getting a request answered: it is repeated, with the same key, while no final answer came.

Waits double up to a longest one and are spread, so that many clients do not knock at once when a server comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reversi_sdk.client.effects import Flow, NoAnswer, Pause, Send, World
from reversi_sdk.client.errors import ServerUnreachable
from reversi_sdk.client.wire import Answer, Document, Request, judge

BASE_MS = 100
LONGEST_MS = 5_000


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request is repeated; `important` is for telling what has already happened."""

    ordinary_ms: int = 15_000
    important_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Delivery:
    """Delivers requests with one world and one patience."""

    world: World
    patience: Patience = Patience()

    def documented(self, request: Request, *, is_important: bool = False) -> Flow[Document]:
        """Deliver and return the document of the success; raises what a problem means."""
        return judge((yield from self.delivered(request, is_important=is_important)))

    def delivered(self, request: Request, *, is_important: bool = False) -> Flow[Answer]:
        """Return the final answer; raises ServerUnreachable when none came in time."""
        keyed = replace(request, key=self.world.new_key()) if request.method == "POST" else request
        patience_ms = self.patience.important_ms if is_important else self.patience.ordinary_ms
        ends_ms = self.world.now_ms() + patience_ms + request.extra_wait_ms
        tries = 0
        while True:
            tries += 1
            answer = yield from self._sent(Send(keyed, is_important))
            if isinstance(answer, Answer) and not answer.is_passing:
                return answer
            wait_ms = self._wait_ms(tries, answer)
            if self.world.now_ms() + wait_ms > ends_ms:
                return _last(answer, tries)
            yield Pause(wait_ms)

    def _sent(self, send: Send) -> Flow[Answer | NoAnswer]:
        try:
            answer: Answer = yield send
        except NoAnswer as error:
            return error
        return answer

    def _wait_ms(self, tries: int, answer: Answer | NoAnswer) -> int:
        longest = min(LONGEST_MS, BASE_MS << min(tries - 1, 10))
        asked_ms = answer.retry_after_ms if isinstance(answer, Answer) else 0
        return max(asked_ms, round(longest * (0.5 + self.world.chance() / 2)))


def _last(answer: Answer | NoAnswer, tries: int) -> Answer:
    if isinstance(answer, NoAnswer):
        raise ServerUnreachable(f"no answer after {tries} tries: {answer}") from answer
    return answer
