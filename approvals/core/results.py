"""What the gate keeps of a result: the plain values of the ground floor, which the client sends by the same rule."""

from __future__ import annotations

from reversi_sdk.plain_values import DEEPEST, as_json, is_storable

__all__ = ["DEEPEST", "as_json", "is_storable"]
