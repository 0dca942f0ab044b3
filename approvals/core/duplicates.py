"""The call key: what makes two calls the same call (D16).

It is an HMAC, so that the ledger refuses repeats without holding the order numbers and names that keys are made of.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.core.values import RunRecord
from reversi_sdk.canonical import canonical_bytes
from reversi_sdk.model import Manifest
from reversi_sdk.references import Root
from reversi_sdk.templates import TemplateUnavailable, parse_template, render_template


@dataclass(frozen=True, slots=True)
class RenderedKey:
    """The manifest's key template over one call's arguments: the text, or why there is none. Both None: no template."""

    text: str | None = None
    problem: str | None = None


def render_key(manifest: Manifest | None, args: Mapping[str, Any]) -> RenderedKey:
    """Render the key of a call; an argument that is missing or not plain makes it unavailable, never guessed."""
    if manifest is None or manifest.idempotency is None:
        return RenderedKey()
    try:
        template = parse_template(manifest.idempotency.key)
        return RenderedKey(text=render_template(template, {Root.ARGS: args}))
    except TemplateUnavailable as error:
        return RenderedKey(problem=f"the idempotency key cannot be built: {error}")


def call_key(manifest: Manifest | None, rendered: RenderedKey, run: RunRecord, secret: str) -> str | None:
    """Return what is unique among standing calls, or None when the tool declares no key."""
    if manifest is None or manifest.idempotency is None or rendered.text is None:
        return None
    scope = manifest.idempotency.scope
    holder = {"run": run.id, "actor": run.agent}.get(scope, "")
    body = canonical_bytes([manifest.tool, scope, holder, rendered.text])
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
