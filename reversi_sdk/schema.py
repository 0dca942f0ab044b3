"""The JSON Schema of a manifest, written from the validator's own tables, for editors.

It knows the shape of every field and the few rules between fields that a schema can say plainly. The validator is
the authority: it also judges references, and what the schema refuses it refuses too.
`python -m reversi_sdk.schema` writes the file, `--check` compares it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from reversi_sdk.manifests.fields import CONTRACT_MANIFEST, EFFECT_WORDS, FORM_FIELDS

SCHEMA_PATH: Final = Path(__file__).resolve().parent.parent / "schemas" / "manifest.schema.json"

_CONST: Final = {"type": "object", "properties": {"const": {}}, "required": ["const"], "additionalProperties": False}
_UNDONE: Final = ("reversible", "compensable")


def manifest_schema() -> dict[str, Any]:
    """Build the schema of a manifest file: one manifest or a list of them."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Reversi tool manifests",
        "anyOf": [{"$ref": "#/$defs/manifest"}, {"type": "array", "items": {"$ref": "#/$defs/manifest"}}],
        "$defs": {
            "manifest": CONTRACT_MANIFEST.schema() | {"allOf": _rules()},
            "flat_value": {
                "anyOf": [
                    {"type": "string", "pattern": r"^\$(args|result|before|lookup|idempotency_key)"},
                    _CONST,
                    {"type": "array", "items": {"$ref": "#/$defs/flat_value"}},
                    {
                        "type": "object",
                        "additionalProperties": {"$ref": "#/$defs/flat_value"},
                        "not": {"required": ["const"]},
                    },
                ]
            },
            "contract_value": {
                "anyOf": [
                    {"type": "string", "pattern": "^(request|response|before|lookup|idempotency_key)"},
                    _CONST,
                ]
            },
        },
    }


def _rules() -> list[dict[str, Any]]:
    undone, others = list(_UNDONE), [word for word in EFFECT_WORDS if word not in _UNDONE]
    no_form = {"not": {"anyOf": [{"required": [name]} for name in FORM_FIELDS]}}
    return [
        _when({"enum": undone}, {"required": ["compensation"]}),
        _when({"enum": others}, {"not": {"required": ["compensation"]}}),
        _when({"enum": [*undone, "irreversible"]}, {"not": {"required": ["retry"]}}),
        _when({"const": "irreversible"}, {"properties": {"approval": {"not": {"const": "never"}}}}),
        _when({"type": "object"}, no_form),
    ]


def _when(effect: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": {"effect": effect}, "required": ["effect"]}, "then": then}


def schema_text() -> str:
    """The schema as its file holds it."""
    return json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str] | None = None, *, path: Path = SCHEMA_PATH) -> int:
    """Write the schema's file, or with --check say whether it is as generated."""
    parser = argparse.ArgumentParser(prog="python -m reversi_sdk.schema", description="Write the manifest schema.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing; exit 1 on a difference")
    if not parser.parse_args(arguments).check:
        path.write_text(schema_text(), encoding="utf-8")
        return 0
    is_same = path.is_file() and path.read_text(encoding="utf-8") == schema_text()
    if not is_same:
        sys.stderr.write(f"{path.name} is not as generated: run python -m reversi_sdk.schema\n")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
