"""The manifest of a tool: one schema, one validator (D1).

`validate_manifest` takes any Python value, never raises, and lists everything that is wrong at once, in the order of
the document. The normal form it returns is what is stored, signed and compared:

- durations are integer milliseconds, `requires` is a list of `{tool, status}`, `residue` and roles are lists;
- every documented default is written (`version`, `status`, `approval`, `kind`, `requires_approval`, empty argument
  maps, `retries`, `backoff_ms`, the three of `retry`, the scope of `idempotency`, the class of a block); an
  `approval` object keeps its fields as given; other absent fields stay absent;
- flags that say only what is usual (`self_inverse`, `repeatable`, `compensation_only` false, `on_missing: refuse`, a
  block's `reversible`) are left out, and references stay as they are spelled;
- a contract block stays one; its normal form reads back as itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reversi_sdk.canonical import canonical_bytes, find_flaws, path_text, sha256_hex
from reversi_sdk.manifests.contract import check_block
from reversi_sdk.manifests.fields import CONTRACT_MANIFEST, FLAT_MANIFEST
from reversi_sdk.manifests.normal import manifest_from_normal
from reversi_sdk.manifests.places import is_contract
from reversi_sdk.manifests.report import ManifestProblem, Report, in_document_order
from reversi_sdk.manifests.rules import RULES, effect_word
from reversi_sdk.manifests.shapes import kind_of

__all__ = [
    "CheckedManifest",
    "ManifestProblem",
    "canonical_manifest",
    "check_manifest",
    "manifest_checksum",
    "manifest_from_normal",
    "validate_manifest",
]

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """What a document says as a manifest, or everything that keeps it from being one."""

    normalized: dict[str, Any] | None
    problems: tuple[ManifestProblem, ...]


def validate_manifest(data: Any) -> tuple[dict[str, Any] | None, list[dict[str, str]]]:
    """Normalise a manifest, or say what is wrong as `{path, message}`, with a `code` for the checks of D4."""
    checked = check_manifest(data)
    return checked.normalized, [_error(problem) for problem in checked.problems]


def _error(problem: ManifestProblem) -> dict[str, str]:
    error = {"path": path_text(problem.path), "message": problem.message}
    return error if problem.code is None else error | {"code": problem.code}


def check_manifest(data: Any) -> CheckedManifest:
    """As `validate_manifest`, with the places as tuples for whoever knows the lines of the document."""
    flaws, is_judgeable = _flaws(data)
    if not is_judgeable or not isinstance(data, dict):
        flaws = flaws or [ManifestProblem((), f"a manifest is an object, not {kind_of(data)}")]
        return CheckedManifest(None, tuple(flaws))
    report = Report()
    normalized = _read(data, report)
    flawed = {flaw.path for flaw in flaws}
    problems = [*flaws, *(problem for problem in report.problems if problem.path not in flawed)]
    if problems:
        return CheckedManifest(None, tuple(in_document_order(problems, data)))
    return CheckedManifest(_finished(normalized), ())


def _flaws(data: Any) -> tuple[list[ManifestProblem], bool]:
    found = list(find_flaws(data, max_depth=MAX_DEPTH, max_values=MAX_VALUES, refuses_nul=True))
    is_judgeable = not any(flaw.is_fatal for flaw in found)
    return [ManifestProblem(flaw.path, flaw.problem) for flaw in found], is_judgeable


def _read(data: Mapping[str, Any], report: Report) -> dict[str, Any]:
    shape = CONTRACT_MANIFEST if is_contract(data) else FLAT_MANIFEST
    normalized: dict[str, Any] = shape.read(data, (), report)
    for rule in (*RULES, check_block):
        rule(normalized, report)
    return normalized


def _finished(normalized: dict[str, Any]) -> dict[str, Any]:
    is_always = effect_word(normalized) == "irreversible"
    normalized.setdefault("approval", "always" if is_always else "never")
    if is_contract(normalized):
        normalized["effect"].pop("reversible", None)
    return normalized


def canonical_manifest(normalized: Mapping[str, Any]) -> bytes:
    """The bytes of a normal form that are hashed and signed."""
    return canonical_bytes(normalized)


def manifest_checksum(normalized: Mapping[str, Any]) -> str:
    """The SHA-256 of a normal form, 64 hex digits (D6)."""
    return sha256_hex(canonical_manifest(normalized))
