"""The manifest language of Reversi: what an agent, a build or a connector needs without a server."""

from __future__ import annotations

from reversi_sdk.errors import EffectUncertainError, ReversiError
from reversi_sdk.manifests import validate_manifest

__all__ = ["EffectUncertainError", "ReversiError", "validate_manifest"]
