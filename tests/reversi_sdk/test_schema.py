"""The JSON Schema and the pydantic model, against the validator."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from reversi_sdk import validate_manifest
from reversi_sdk.manifests import manifest_checksum
from reversi_sdk.pydantic_models import ToolManifest
from reversi_sdk.schema import SCHEMA_PATH, main, manifest_schema, schema_text
from tests.reversi_sdk.sdk_factories import EXAMPLE, SAMPLES, compensating, contract, flat, reading

REFUSED_BY_BOTH: dict[str, Any] = {
    "unknown field": reading(ownr="x"),
    "unknown field inside": compensating(argumentmap={}),
    "missing field": reading(permission=None),
    "tool with line end": reading(tool="a\n"),
    "tool part": reading(tool="a/./b"),
    "effect": reading(effect="reed"),
    "duration": reading(timeout_ms="30"),
    "duration with line end": reading(timeout_ms="30s\n"),
    "negative": reading(timeout_ms=-1),
    "literal in a map": compensating(argument_map={"a": 5}),
    "bad reference": compensating(argument_map={"a": "id"}),
    "const with others": compensating(argument_map={"a": {"const": 1, "b": "$args.b"}}),
    "block in a block": contract(inverse={"operation": "a", "arguments": {"a": ["response.a"]}}),
    "no undo": flat(compensation=None),
    "undo of a read": flat(effect="read_only"),
    "retry of a change": flat(retry={}),
    "never": {"tool": "m", "effect": "irreversible", "permission": "p", "approval": "never"},
    "two forms": contract() | {"compensation": flat()["compensation"]},
    "two deadlines": compensating(deadline={"within_ms": 1, "at": "$result.a"}),
    "operation and tool": contract(
        inverse={"operation": "a", "verification": {"operation": "a", "tool": "b", "expect": {"a": 1}}}
    ),
    "nothing expected": compensating(verification={"tool": "a", "expect": {}}),
    "listed twice": flat(touches=["a", "a"]),
    "too many": reading(version=2**53),
    "list": [[]],
}


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    return Draft202012Validator(manifest_schema())


def test_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(manifest_schema())


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
def test_schema_accepts_what_the_validator_accepts(schema: Draft202012Validator, data: Any) -> None:
    assert schema.is_valid(data)
    assert schema.is_valid(validate_manifest(data)[0])


def test_schema_accepts_a_list(schema: Draft202012Validator) -> None:
    assert schema.is_valid(EXAMPLE)


@pytest.mark.parametrize("data", REFUSED_BY_BOTH.values(), ids=REFUSED_BY_BOTH.keys())
def test_schema_refuses_only_what_the_validator_refuses(schema: Draft202012Validator, data: Any) -> None:
    assert not schema.is_valid(data)
    assert validate_manifest(data)[0] is None


def test_schema_file_is_as_generated() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text()
    assert main(["--check"]) == 0


def test_schema_command_writes_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "manifest.schema.json"

    assert main(["--check"], path=file) == 1
    assert "is not as generated" in capsys.readouterr().err
    assert main([], path=file) == 0
    assert main(["--check"], path=file) == 0


def test_schema_module_runs_as_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["schema", "--check"])

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(main.__code__.co_filename, run_name="__main__")

    assert ended.value.code == 0


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
def test_tool_manifest_holds_the_normal_form(data: Any) -> None:
    normalized, _ = validate_manifest(data)
    manifest = ToolManifest.model_validate(data)

    assert manifest.normalized == normalized
    assert manifest.checksum == manifest_checksum(manifest.normalized)
    assert manifest.to_model().tool == data["tool"]


def test_tool_manifest_refuses_with_every_error() -> None:
    with pytest.raises(ValidationError) as refused:
        ToolManifest.model_validate(reading(ownr="x", version=0))

    (error,) = refused.value.errors()
    assert error["type"] == "manifest_invalid"
    assert [item["path"] for item in error["ctx"]["errors"]] == ["ownr", "version"]


def test_tool_manifest_refuses_braces_in_a_message_as_they_are() -> None:
    with pytest.raises(ValidationError, match=r"needs at least one \{\{args.field\}\}"):
        ToolManifest.model_validate(reading(idempotency={"key": "x"}))
