"""Keep the manifest documents that steps point to.

They are committed before the step that names them. What this process has once seen committed in a database is never
asked for again, so that a call has a fixed number of statements; the memory is kept per database, since a process may
work on several in its life.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection

from manifests_registry.core.snapshot import Entry
from manifests_registry.models import ManifestDocument
from manifests_registry.queries import remember_manifest
from reversi_sdk.manifests import canonical_manifest
from reversi_site.kit.transactions import durable

_committed: dict[str, set[str]] = {}


def ensure_documents(*, entries: Iterable[Entry]) -> None:
    """Store the entries' documents unless they are there; must be called before the transaction that names them."""
    known = _committed.setdefault(_database(), set())
    unknown = {entry.checksum: entry for entry in entries if entry.checksum not in known}
    if not unknown:
        return
    if ManifestDocument.objects.filter(pk__in=list(unknown)).count() < len(unknown):
        _insert(unknown)
    for checksum, entry in unknown.items():
        remember_manifest(checksum, entry.manifest)
    known.update(unknown)


def _insert(entries: dict[str, Entry]) -> None:
    with durable():
        # Looked up again under SQLite's write lock; its trigger refuses even an INSERT that would ignore the conflict.
        present = set(ManifestDocument.objects.filter(pk__in=list(entries)).values_list("pk", flat=True))
        rows = [
            ManifestDocument(checksum=checksum, payload=canonical_manifest(entry.normalized))
            for checksum, entry in entries.items()
            if checksum not in present
        ]
        ManifestDocument.objects.bulk_create(rows, ignore_conflicts=True)


def _database() -> str:
    settings = connection.settings_dict
    return "\0".join(str(settings.get(part, "")) for part in ("ENGINE", "HOST", "PORT", "NAME"))
