"""Manifest documents: stored once, by content, never changed, and believed only when they are what they say."""

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from manifests_registry import queries
from manifests_registry.core.errors import DocumentAltered, DocumentNotFound
from manifests_registry.models import ManifestDocument
from manifests_registry.operations import documents
from manifests_registry.operations.documents import ensure_documents
from reversi_sdk.canonical import sha256_hex
from tests.databases import Database
from tests.manifests_registry.factories import make_entry


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_known", {})


def test_ensure_documents_stores_what_the_checksum_says(db: Database) -> None:
    entry = make_entry(tool="shop.get", effect="read_only")

    ensure_documents(entries=[entry])

    stored = ManifestDocument.objects.get(pk=entry.checksum)
    assert sha256_hex(bytes(stored.payload)) == entry.checksum
    queries._known.clear()
    assert queries.get_document(entry.checksum) == entry.manifest


def test_ensure_documents_asks_once_for_what_is_known(db: Database) -> None:
    entries = [make_entry(tool="shop.get"), make_entry(tool="shop.put")]
    ensure_documents(entries=entries[:1])

    ensure_documents(entries=entries)
    with CaptureQueriesContext(connection) as captured:
        ensure_documents(entries=entries)

    assert len(captured) == 0
    assert ManifestDocument.objects.count() == 2


def test_ensure_documents_finds_what_another_process_stored(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [make_entry(tool="shop.get"), make_entry(tool="shop.put")]
    ensure_documents(entries=entries[:1])
    monkeypatch.setattr(documents, "_committed", {})

    ensure_documents(entries=entries[:1])
    monkeypatch.setattr(documents, "_committed", {})
    ensure_documents(entries=entries)

    assert ManifestDocument.objects.count() == 2


def test_get_documents_takes_one_query(db: Database) -> None:
    entries = [make_entry(tool=f"shop.tool{number}") for number in range(5)]
    ensure_documents(entries=entries)
    queries._known.clear()

    with CaptureQueriesContext(connection) as captured:
        found = queries.get_documents([*(entry.checksum for entry in entries), "0" * 64])

    assert len(captured) == 1
    assert set(found) == {entry.checksum for entry in entries}


def test_get_document_refuses_what_is_not_stored(db: Database) -> None:
    with pytest.raises(DocumentNotFound):
        queries.get_document("0" * 64)


def test_get_document_refuses_bytes_that_are_not_its_own(db: Database) -> None:
    ManifestDocument.objects.create(checksum="1" * 64, payload=b'{"tool":"shop.get"}')

    with pytest.raises(DocumentAltered):
        queries.get_document("1" * 64)


@pytest.mark.parametrize("statement", ["UPDATE {} SET payload = payload", "DELETE FROM {}"])
def test_documents_cannot_be_changed(db: Database, statement: str) -> None:
    ensure_documents(entries=[make_entry(tool="shop.get")])

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format("manifests_registry_manifestdocument"))


def test_documents_cannot_be_replaced_on_sqlite(sqlite_db: Database) -> None:
    ensure_documents(entries=[make_entry(tool="shop.get")])

    with pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute(
            "INSERT OR REPLACE INTO manifests_registry_manifestdocument"
            " SELECT checksum, x'7b7d' FROM manifests_registry_manifestdocument"
        )
