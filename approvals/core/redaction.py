"""What is never shown: the declared paths, and by default whatever is named like a credential (D14).

A value is named where it stands in the call, and also by the argument of a follow-up that it is handed to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from approvals.core.follow_ups import named_values
from reversi_sdk.model import Manifest
from reversi_sdk.redaction import REDACTED, blank_out, credentials_in, hide, is_credential
from reversi_sdk.references import (
    ListValue,
    MapValue,
    ObjectValue,
    Reference,
    Root,
    Spelling,
    parse_reference,
    references_of,
    spelling_of,
)

__all__ = ["REDACTED", "blank_out", "credentials_in", "hide", "is_credential", "is_redacted", "redaction_paths"]


def redaction_paths(manifest: Manifest | None, configured: Sequence[str]) -> tuple[Reference, ...]:
    """Return the manifest's redaction paths, the deployment's, and what a follow-up takes as a credential."""
    ours = tuple(parse_reference(text, spelling=spelling_of(text, default=Spelling.CONTRACT)) for text in configured)
    return ours if manifest is None else (*manifest.redaction, *ours, *_handed_on(manifest))


def _handed_on(manifest: Manifest) -> Iterator[Reference]:
    for root in Root:
        for name, value in named_values(manifest, root):
            yield from (reference for reference in _as_credentials(name, value) if reference.root is root)


def _as_credentials(name: str, value: MapValue) -> Iterator[Reference]:
    match value:
        case _ if is_credential(name):
            yield from references_of(value)
        case ObjectValue(members=members):
            for inner, member in members.items():
                yield from _as_credentials(inner, member)
        case ListValue(items=items):
            for item in items:
                yield from _as_credentials("", item)
        case _:
            return


def is_redacted(reference: Reference, paths: Iterable[Reference]) -> bool:
    """Tell whether a place lies in, or contains, a redacted one."""
    return any(
        path.root is reference.root and all(a == b for a, b in zip(path.path, reference.path, strict=False))
        for path in paths
    )
