"""The examples as they are shipped: their configuration is one, and they name the versions that are tested."""

from __future__ import annotations

import json

import pytest

from reversi_site.configuration import load_configuration
from tests.examples.runs import EXAMPLES
from tests.npm_servers import FOLDER

NAMES = ("filesystem", "memory")


@pytest.mark.parametrize("name", NAMES)
def test_configuration_names_the_manifests_and_the_upstreams(name: str) -> None:
    configuration = load_configuration({}, EXAMPLES / name)

    assert configuration.manifests == (EXAMPLES / name / "manifests.yaml",)
    assert all(path.is_file() for path in configuration.manifests)
    assert all(server.cwd == EXAMPLES / name for server in configuration.servers)
    named = [server.name for server in configuration.servers] + [each.name for each in configuration.connectors]
    assert named == (["files", "fs"] if name == "filesystem" else ["memory"])


@pytest.mark.parametrize("name", NAMES)
def test_examples_name_the_version_that_is_tested(name: str) -> None:
    pinned = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))["dependencies"]
    package = f"@modelcontextprotocol/server-{name}"

    for file in ("README.md", "manifests.yaml", "reversi.config.yaml"):
        assert pinned[package] in (EXAMPLES / name / file).read_text(encoding="utf-8"), file


def test_lock_file_says_what_is_installed_and_not_where_from() -> None:
    locked = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]

    assert [path for path, package in locked.items() if "resolved" in package] == []
    assert [path for path, package in locked.items() if path and "integrity" not in package] == []
