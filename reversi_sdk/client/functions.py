"""Calling the functions that a caller hands in: what each gets, found out before anything is announced.

`execute` gets the arguments, and the key to send downstream where it takes two parameters or names one `key` or
`idempotency_key`. Deciding by the signature keeps a parameter with a default from being given a key by accident.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

KEY_NAMES = ("idempotency_key", "key")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

Execute = Callable[..., Any]
Reader = Callable[[str, dict[str, Any]], Any]
Compensate = Callable[[dict[str, Any]], Any]
Verify = Callable[[dict[str, Any]], Any]
Probe = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Executing:
    """A caller's function, and how it takes arguments and key."""

    function: Execute
    takes: str

    def bound(self, args: Mapping[str, Any], key: str | None) -> Callable[[], Any]:
        """Return the call to make."""
        # A copy: a tool that changes its arguments must not change what the caller holds.
        own = copy.deepcopy(dict(args))
        match self.takes:
            case "nothing":
                return self.function
            case "arguments":
                return partial(self.function, own)
            case "both":
                return partial(self.function, own, key)
            case name:
                return partial(self.function, own, **{name: key})


def executing(function: Execute) -> Executing:
    """Look at what the function takes; raises TypeError for what cannot be called."""
    if not callable(function):
        raise TypeError(f"execute must be a function, not {type(function).__name__}")
    try:
        parameters = tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return Executing(function, "arguments")
    return Executing(function, _takes(parameters))


def _takes(parameters: tuple[inspect.Parameter, ...]) -> str:
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    by_name = {each.name for each in parameters if each.kind is not inspect.Parameter.POSITIONAL_ONLY}
    named = next((name for name in KEY_NAMES if name in by_name - {each.name for each in positional[:1]}), None)
    if named is not None:
        return named
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return "both"
    required = [each for each in positional if each.default is inspect.Parameter.empty]
    if len(required) >= 2:
        return "both"
    return "arguments" if positional else "nothing"
