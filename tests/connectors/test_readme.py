from __future__ import annotations

import re
from pathlib import Path

import connectors
from connectors.catalog import connector_names, connector_spec

README = Path(connectors.__file__).with_name("README.md")
GENERATED = re.compile(r"<!-- generated: tool table of (\w+) -->\n\n(.*?)\n<!-- end -->", re.DOTALL)


def test_readme_shows_the_tables_as_they_are() -> None:
    shown = dict(GENERATED.findall(README.read_text(encoding="utf-8")))

    assert shown == {name: connectors.tool_table(connector_spec(name)) for name in connector_names()}
