from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors import all_connectors, check_catalog, compensator_for, connector_schema_hashes, tool_table
from connectors.catalog import connector_spec
from connectors.compensator import CallMalformed
from connectors.core.outcomes import EffectUncertainError, ToolError
from connectors.settings import build_connector, enabled_connectors
from reversi_sdk.errors import InvalidInput, NotFound
from tests.connectors.core.tables import CANCEL, GET, shop
from tests.connectors.trees import undo_arguments


def call_of(tool: str, arguments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "run_id": "run_1",
        "step": 0,
        "tool": tool,
        "original_tool": "fs.write_file",
        "args": arguments,
        "idempotency_key": "k" * 64,
        **changes,
    }


def test_all_connectors_builds_what_is_configured(root: Path) -> None:
    (connector,) = all_connectors({"fs": {"root": str(root), "backup_dir": root / "kept"}})

    connector.call("fs.write_file", {"path": "a", "content": "x"})
    connector.call("fs.delete_file", {"path": "a"})

    assert (root / "kept").is_dir()


@pytest.mark.parametrize(
    ("config", "kind", "words"),
    [
        ({"ftp": {}}, NotFound, "^no connector is named ftp; there is fs$"),
        ({"fs": {}}, InvalidInput, "^connector fs needs the option root"),
        ({"fs": {"root": ".", "token": "x"}}, InvalidInput, "^connector fs takes no option token"),
        ({"fs": {"root": 1}}, InvalidInput, "^option root of connector fs must be a path"),
    ],
)
def test_all_connectors_refuses(config: dict[str, dict[str, Any]], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        all_connectors(config)


def test_build_connector_works_in_the_current_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (root / "a").write_text("x")

    connector = build_connector("fs", environ={})

    assert connector.call("fs.read_file", {"path": "a"})["content"] == "x"


def test_file_system_is_always_enabled(root: Path) -> None:
    assert [connector.name for connector in enabled_connectors(root=root, environ={})] == ["fs"]


def test_compensator_runs_the_undo_and_passes_what_comes_with_it(root: Path) -> None:
    (connector,) = all_connectors({"fs": {"root": root}})
    result = connector.call("fs.write_file", {"path": "a", "content": "x"})
    tool, arguments = undo_arguments(connector, "fs.write_file", result)
    (root / "a").write_text("newer")
    compensate = compensator_for([connector])

    with pytest.raises(ToolError, match=r"^changed since: "):
        compensate(call_of(tool, arguments))
    with pytest.raises(ToolError, match=r"^changed since: "):
        compensate(call_of(tool, arguments, overwrite=False))
    compensate(call_of(tool, arguments, overwrite=True))

    assert not (root / "a").exists()


def test_compensator_passes_the_key() -> None:
    compensate = compensator_for([shop(GET, CANCEL).bind(None)])

    assert compensate(call_of("shop.cancel", {"id": "1"}, lease="ignored"))["key"] == "k" * 64


def test_compensator_lets_the_outcome_through() -> None:
    def lose(*_: Any) -> Any:
        raise EffectUncertainError("connection lost")

    compensate = compensator_for([shop(replace(CANCEL, run=lose)).bind(None)])

    with pytest.raises(EffectUncertainError, match=r"^connection lost"):
        compensate(call_of("shop.cancel", {"id": "1"}))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        ([], CallMalformed, "^a call must be a JSON object"),
        ({}, CallMalformed, "^not a compensation call: argument run_id is required"),
        (call_of("shop.cancel", {}, step="0"), CallMalformed, "argument step must be an integer"),
        (call_of("shop.cancel", {}, args=[]), CallMalformed, "argument args must be an object"),
        (call_of("shop.cancel", {}, overwrite="yes"), CallMalformed, "argument overwrite must be a boolean"),
        (call_of("shop.cancel", {}), ToolError, "^argument id is required"),
        (call_of("shop.get", {"id": "1"}), ToolError, "^shop.get only reads: it undoes nothing"),
        (call_of("shop.sell", {}), ToolError, "^no enabled connector offers shop.sell"),
    ],
)
def test_compensator_refuses(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        compensator_for([shop(GET, CANCEL).bind(None)])(call)


def test_surface_covers_a_spec_and_a_connector_alike(root: Path) -> None:
    (connector,) = all_connectors({"fs": {"root": root}})
    spec = connector_spec("fs")

    assert check_catalog() == ()
    assert tool_table(connector) == tool_table(spec)
    assert connector_schema_hashes(connector) == connector_schema_hashes(spec)
    assert connector.manifests() == spec.manifests()
