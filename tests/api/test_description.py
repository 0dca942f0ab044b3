"""The published description: as generated, 3.1, complete, and browsable without anything from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from reversi_site.openapi import SCHEMA_PATH, main, openapi_document, openapi_text
from tests.api.test_matrix import MATRIX
from tests.api.world import World


def test_file_is_as_generated() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == openapi_text(), "run `python -m reversi_site.openapi`"


def test_check_notices_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "openapi.json"

    assert main(["--check"], path=path) == 1
    assert main([], path=path) == 0
    assert main(["--check"], path=path) == 0
    path.write_text(path.read_text() + " ")
    assert main(["--check"], path=path) == 1
    assert "not as generated" in capsys.readouterr().err


def test_document_describes_every_route() -> None:
    document = openapi_document()
    described = {
        (method.upper(), path.lstrip("/")) for path, methods in document["paths"].items() for method in methods
    }
    expected = {
        (method, route.replace("<str:", "{").replace("<int:", "{").replace(">", "}")) for method, route in MATRIX
    }

    assert document["openapi"].startswith("3.1")
    assert described == expected


def test_operations_have_names_words_and_closed_bodies() -> None:
    document = openapi_document()
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]

    assert len(set(names)) == len(names)
    assert [operation["operationId"] for operation in operations if not operation.get("summary")] == []
    for operation in operations:
        for reference in (
            each["schema"]["$ref"] for each in operation.get("requestBody", {}).get("content", {}).values()
        ):
            assert document["components"]["schemas"][reference.rpartition("/")[2]]["additionalProperties"] is False


def test_component_schemas_are_schemas() -> None:
    for schema in openapi_document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_document_is_served_to_whoever_asks() -> None:
    answer = Client().get("/v1/openapi.json")

    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    assert json.loads(answer.content) == openapi_document()


@pytest.mark.parametrize("path", ["/v1/docs", "/v1/docs?script="])
def test_page_loads_nothing_from_elsewhere(path: str) -> None:
    answer = Client().get(path)
    text = answer.content.decode()

    assert answer.status_code == 200
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert not any(f'{word}="http' in text or f'{word}="//' in text for word in ("src", "href"))


def test_answers_are_what_the_document_says(world: World) -> None:
    document: dict[str, Any] = openapi_document()
    page = {"$ref": "#/components/schemas/RunPage", "components": document["components"]}

    Draft202012Validator(page).validate(world.agent.get("runs").data)
