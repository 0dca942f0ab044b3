"""The manifests that connectors print are manifests: the validator takes them and finds nothing to say."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.catalog import connector_names, connector_spec
from connectors.core.tool import Tool
from reversi_sdk.manifests import manifest_from_normal, validate_manifest
from reversi_sdk.references import references_of
from reversi_sdk.templates import parse_template

MANIFESTS = [manifest for name in connector_names() for manifest in connector_spec(name).manifests()]
ROWS: dict[str, Tool] = {row.name: row for name in connector_names() for row in connector_spec(name).rows}


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: str(manifest["tool"]))
def test_manifest_is_valid_and_normal_form_keeps_what_it_says(manifest: dict[str, Any]) -> None:
    normalized, errors = validate_manifest(manifest)

    assert errors == []
    assert normalized is not None
    assert {key: normalized[key] for key in manifest if key != "compensation"} == {
        key: manifest[key] for key in manifest if key != "compensation"
    }
    assert validate_manifest(normalized) == (normalized, [])


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: str(manifest["tool"]))
def test_undo_takes_exactly_the_mapped_arguments(manifest: dict[str, Any]) -> None:
    normalized, _ = validate_manifest(manifest)
    assert normalized is not None
    undo = manifest_from_normal(normalized).undo
    row = ROWS[manifest["tool"]]
    if undo is None:
        assert row.undo is None
        return

    assert set(undo.arguments) == set(ROWS[undo.tool].inputs)
    assert undo.verification is not None
    assert set(undo.verification.arguments) <= set(ROWS[undo.verification.tool].inputs)
    assert all(references_of(value) for value in undo.verification.expect.values())


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: str(manifest["tool"]))
def test_templates_parse(manifest: dict[str, Any]) -> None:
    parse_template(manifest["summary"], roots=frozenset({"args"}))

    for touched in manifest.get("touches", []):
        assert parse_template(touched, roots=frozenset({"args", "result"})).references


def test_every_changing_tool_touches_something() -> None:
    assert [row.name for row in ROWS.values() if bool(row.touches) == row.is_reading] == []


def test_undo_tools_are_left_to_rollback() -> None:
    undoing = {row.undo.tool for row in ROWS.values() if row.undo}
    # Undoes what another program did, which no row of ours stands for.
    undoing.add("fs.remove_file")

    assert {row.name for row in ROWS.values() if row.is_compensation_only} == undoing
