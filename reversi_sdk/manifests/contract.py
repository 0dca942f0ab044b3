"""The rows of D4 about a block's class and its follow-ups, as far as one manifest shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reversi_sdk.manifests.report import Report

_REVERSIBLE_CLASSES = ("read", "reversible")


def check_block(manifest: Mapping[str, Any], report: Report) -> None:
    """Judge a contract block by its class; a block whose class cannot be read is judged by nothing."""
    block = manifest.get("effect")
    if not isinstance(block, dict) or "class" not in block:
        return
    for field, message, code in (*_class_rows(block), *_follow_up_rows(block)):
        report.add(("effect", field), message, f"effect/{code}")
    for field, message, code in _missing_rows(block):
        if not report.is_spoiled(("effect", field)):
            report.add(("effect", field), message, f"effect/{code}")


def _missing_rows(block: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    word = block["class"]
    if word == "reversible" and "inverse" not in block:
        yield "inverse", "is required: a reversible effect has an inverse", "reversible_without_inverse"
    if word == "compensable" and "compensate" not in block:
        yield "compensate", "is required: a compensable effect has a compensate", "compensable_without_compensate"


def _class_rows(block: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    word = block["class"]
    if "reversible" in block and block["reversible"] is not (word in _REVERSIBLE_CLASSES):
        claim = str(block["reversible"]).lower()
        yield "reversible", f"class {word} disagrees with reversible: {claim}", "class_conflicts_reversible"


def _follow_up_rows(block: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    word = block["class"]
    if "inverse" in block and word != "reversible":
        message = f"does not belong to class {word}: only a reversible effect has one"
        yield "inverse", message, "inverse_on_non_reversible"
    if "compensate" in block and word not in ("reversible", "compensable"):
        message = f"does not belong to class {word}: only a reversible or compensable effect has one"
        yield "compensate", message, "compensate_on_class"
    if "lookup" in block and word == "read":
        yield "lookup", "does not belong to a read: there is no effect to find", "lookup_on_read"
    if "draft" in block and word == "read":
        yield "draft", "does not belong to a read: there is no effect to stage", "draft_on_read"
