"""What the registry can be asked: documents by checksum, and the manifests that are enforced now."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from manifests_registry.core.errors import DocumentAltered, DocumentNotFound
from manifests_registry.core.snapshot import Snapshot
from manifests_registry.models import ManifestDocument
from manifests_registry.sources import SnapshotCache
from reversi_sdk.canonical import sha256_hex
from reversi_sdk.manifests import manifest_from_normal
from reversi_sdk.model import Manifest

# A checksum means the same bytes in every database, so what was checked once stays true.
_known: dict[str, Manifest] = {}
_snapshots = SnapshotCache()


def remember_manifest(checksum: str, manifest: Manifest) -> None:
    """Keep a manifest whose document is known to be stored."""
    _known[checksum] = manifest


def get_document(checksum: str) -> Manifest:
    """Return the manifest of that checksum; raises DocumentNotFound or DocumentAltered."""
    found = get_documents([checksum])
    if checksum not in found:
        raise DocumentNotFound(checksum)
    return found[checksum]


def get_documents(checksums: Collection[str]) -> Mapping[str, Manifest]:
    """Return the manifests by checksum in one query at most; those that are not stored are absent.

    Raises DocumentAltered when stored bytes do not hash to their key.
    """
    unknown = {checksum for checksum in checksums if checksum not in _known}
    if unknown:
        rows = ManifestDocument.objects.filter(pk__in=sorted(unknown)).values_list("checksum", "payload")
        _known.update({checksum: _checked(checksum, bytes(payload)) for checksum, payload in rows})
    return {checksum: _known[checksum] for checksum in checksums if checksum in _known}


def _checked(checksum: str, payload: bytes) -> Manifest:
    if sha256_hex(payload) != checksum:
        raise DocumentAltered(checksum)
    return manifest_from_normal(json.loads(payload))


def current_snapshot(paths: Sequence[Path]) -> Snapshot:
    """Return the manifests in the files and folders as they are now; raises InvalidManifests listing every problem.

    Files are read again only when one of them changed.
    """
    return _snapshots.get(tuple(paths))
