"""The manifest that a tool row stands for, in the flat spelling, as plain data and as YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from connectors.core.tool import Tool, UndoRow, VerificationRow


def manifest_of(tool: Tool) -> dict[str, Any]:
    """Derive the manifest of `tool`; fields that say nothing are left out."""
    manifest: dict[str, Any] = {
        "tool": tool.name,
        "description": tool.description,
        "effect": tool.effect.value,
        "permission": tool.permission,
        "summary": tool.summary,
    }
    if tool.touches:
        manifest["touches"] = list(tool.touches)
    if tool.timeout_ms is not None:
        manifest["timeout_ms"] = tool.timeout_ms
    if tool.key_carrier is not None:
        argument = tool.key_carrier.argument
        manifest["key_carrier"] = {"meta": True} if argument is None else {"argument": argument}
    if tool.is_compensation_only:
        manifest["compensation_only"] = True
    if tool.undo is not None:
        manifest["compensation"] = _compensation_of(tool.undo)
    return manifest


def manifests_yaml(found: Sequence[dict[str, Any]]) -> str:
    """Write manifests as the YAML of one file."""
    return str(yaml.dump(list(found), Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=100))


class _PlainDumper(yaml.SafeDumper):
    """Writes repeated values out instead of pointing at their first place."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _compensation_of(undo: UndoRow) -> dict[str, Any]:
    compensation: dict[str, Any] = {
        "tool": undo.tool,
        "kind": undo.kind.value,
        "argument_map": dict(undo.argument_map),
    }
    if undo.residue:
        compensation["residue"] = list(undo.residue)
    if undo.requires_approval:
        compensation["requires_approval"] = True
    if undo.timeout_ms is not None:
        compensation["timeout_ms"] = undo.timeout_ms
    if undo.verification is not None:
        compensation["verification"] = _verification_of(undo.verification)
    return compensation


def _verification_of(verification: VerificationRow) -> dict[str, Any]:
    return {
        "tool": verification.tool,
        "arguments": dict(verification.arguments),
        "expect": dict(verification.expect),
        "retries": verification.retries,
        "backoff_ms": verification.backoff_ms,
    }
