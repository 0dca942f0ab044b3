"""The three ways a tool call ends: a JSON-able result, a definite failure, an unknown outcome.

A tool function returns its result, raises `ToolError` when the thing asked for was definitely not done, or raises
`EffectUncertainError` when it may or may not have been done. Anything else that escapes a tool function is a
bug, and a bug in a tool that changes things leaves the outcome unknown.
"""

from __future__ import annotations

from reversi_sdk.errors import EffectUncertainError, ToolError

__all__ = ["EffectUncertainError", "ToolError"]
