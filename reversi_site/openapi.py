"""The OpenAPI document of `/v1` and its golden file.

`python -m reversi_site.openapi` writes `schemas/openapi.json`, `--check` compares it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

SCHEMA_PATH: Final = Path(__file__).resolve().parent.parent / "schemas" / "openapi.json"


def openapi_document() -> dict[str, Any]:
    """Return the description of `/v1`."""
    from drf_spectacular.generators import SchemaGenerator

    generator: Any = SchemaGenerator
    document: dict[str, Any] = generator().get_schema(request=None, public=True)
    return document


def openapi_text() -> str:
    """Return the document as its file holds it."""
    return json.dumps(openapi_document(), indent=2, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str] | None = None, *, path: Path = SCHEMA_PATH) -> int:
    """Write the file, or with --check say whether it is as generated."""
    parser = argparse.ArgumentParser(prog="python -m reversi_site.openapi", description="Write the API's schema.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing; exit 1 on a difference")
    is_checking = parser.parse_args(arguments).check
    from reversi_site.store import set_up

    set_up()
    if not is_checking:
        path.write_text(openapi_text(), encoding="utf-8")
        return 0
    is_same = path.is_file() and path.read_text(encoding="utf-8") == openapi_text()
    if not is_same:
        sys.stderr.write(f"{path.name} is not as generated: run python -m reversi_site.openapi\n")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
