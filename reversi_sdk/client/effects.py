"""What the rules of the client want done, as values; a driver does it and hands back what came of it.

A flow is a generator: it yields effects, is sent their values, and has their exceptions raised at the place where it
asked. So the same flow is driven by threads and by an event loop, and tested with neither.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from reversi_sdk.client.wire import Request
from reversi_sdk.errors import Unavailable

T = TypeVar("T")


class NoAnswer(Unavailable):
    """One sending of a request got no whole answer."""

    code = "no_answer"


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request once; comes back as an Answer, or NoAnswer is raised.

    An important one is not broken off when the caller is cancelled: it tells of something that has happened.
    """

    request: Request
    is_important: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    ms: int


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call a function of the caller's; comes back as what it returned, awaited where it can be."""

    call: Callable[[], Any]


Effect = Send | Pause | Invoke
Flow = Generator[Effect, Any, T]


@dataclass(frozen=True, slots=True)
class World:
    """What rules may not take from the process themselves: time, chance and fresh keys."""

    now_ms: Callable[[], int]
    chance: Callable[[], float]
    new_key: Callable[[], str]


def real_world() -> World:
    """Return the process's clock and randomness."""
    return World(
        now_ms=lambda: time.monotonic_ns() // 1_000_000,
        chance=random.random,
        new_key=lambda: uuid.uuid4().hex,
    )
