"""The two tools for files that another program changes: they take its absolute paths, and nothing else (D108)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from connectors.catalog import fs
from connectors.core.connector import Connector
from connectors.core.outcomes import ToolError
from tests.connectors.trees import BACKUPS, describe, tree_of

TOOLS = ("fs.resolve", "fs.remove_file")
NOTHING: dict[str, Any] = {"exists": False, "kind": None, "sha256": None, "mode": None}


@pytest.fixture
def tree(root: Path, outside: Path) -> Path:
    (root / "d").mkdir(mode=0o750)
    (root / "d/f").write_text("x")
    (root / "d/f").chmod(0o640)
    (root / "to-d").symlink_to("d")
    (root / "to-f").symlink_to("d/f")
    (root / "dangling").symlink_to("d/nothing")
    (root / "out").symlink_to(outside)
    return root


def resolve(connector: Connector, path: str | Path) -> dict[str, Any]:
    answer: dict[str, Any] = connector.call("fs.resolve", {"path": str(path)})
    return answer


def test_resolve_answers_what_stands_there(connector: Connector, tree: Path) -> None:
    kind, mode, sha256 = describe(tree / "d/f")

    answer = resolve(connector, tree / "d/f")

    assert answer == {"path": "d/f", "exists": True, "kind": kind, "sha256": sha256, "mode": mode, "missing": []}


@pytest.mark.parametrize(
    ("asked", "path", "missing"),
    [
        ("d/new", "d/new", ["d/new"]),
        ("a/b/c", "a/b/c", ["a", "a/b", "a/b/c"]),
        ("to-d/a/b", "d/a/b", ["d/a", "d/a/b"]),
        ("d/f/below", "d/f/below", []),
        ("dangling", "d/nothing", ["d/nothing"]),
    ],
)
def test_resolve_answers_what_is_missing_topmost_first(
    connector: Connector, tree: Path, asked: str, path: str, missing: list[str]
) -> None:
    assert resolve(connector, tree / asked) == {"path": path, **NOTHING, "missing": missing}


def test_resolve_names_what_making_the_directory_makes(connector: Connector, tree: Path) -> None:
    answer = resolve(connector, tree / "to-d/a/b")

    assert connector.call("fs.make_dir", {"path": "to-d/a/b"})["created"] == answer["missing"]


@pytest.mark.parametrize("spelled", ["{root}", "{root}/", "{root}/.", "//{root}/./", "{alias}", "{alias}/"])
def test_resolve_takes_every_spelling_of_the_root(connector: Connector, tree: Path, spelled: str) -> None:
    alias = tree.parent / "alias"
    alias.symlink_to(tree)

    answer = resolve(connector, spelled.format(root=tree, alias=alias))

    assert (answer["path"], answer["kind"], answer["missing"]) == (".", "directory", [])


def test_root_below_a_link_is_recognised(tree: Path) -> None:
    alias = tree.parent / "alias"
    alias.symlink_to(tree)

    connector = fs.build(alias)

    assert [resolve(connector, top / "d/f")["path"] for top in (tree, alias)] == ["d/f", "d/f"]


REFUSED = {
    "relative": ("d/f", "must be absolute"),
    "home": ("~/f", "must be absolute"),
    "empty": ("", "must be absolute"),
    "up": ("{root}/d/../d/f", "must not contain .."),
    "beside the root": ("{root}-2/f", "not below the root"),
    "above the root": ("{parent}", "not below the root"),
    "elsewhere": ("/nowhere/f", "not below the root"),
    "through a link outside": ("{root}/out/secret.txt", "leads outside the root"),
    "nul": ("{root}/\0", "NUL"),
    "no text": ("{root}/\ud800", "not valid text"),
    "backups": ("{root}/.reversi-backups/x", "reserved"),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("case", REFUSED)
def test_every_other_path_is_refused_and_never_absent(connector: Connector, tree: Path, case: str, tool: str) -> None:
    path, words = REFUSED[case]
    before = tree_of(tree, is_with_backups=True)

    with pytest.raises(ToolError, match=words):
        connector.call(tool, {"path": path.format(root=tree, parent=tree.parent)})

    assert tree_of(tree, is_with_backups=True) == before


def test_remove_file_moves_it_into_the_backups(connector: Connector, tree: Path) -> None:
    answer = connector.call("fs.remove_file", {"path": str(tree / "to-d/f")})

    assert (answer["path"], answer["already_removed"]) == ("d/f", False)
    assert not (tree / "d/f").exists()
    assert (tree / BACKUPS / answer["backup"]).read_text() == "x"


@pytest.mark.parametrize("path", ["d/nothing", "gone/f", "d/f/below"])
def test_remove_file_is_done_where_nothing_stands(connector: Connector, tree: Path, path: str) -> None:
    before = tree_of(tree)

    answer = connector.call("fs.remove_file", {"path": str(tree / path)})

    assert (answer["already_removed"], answer["backup"]) == (True, None)
    assert tree_of(tree) == before


@pytest.mark.parametrize(
    ("path", "words"), [("d", "a directory"), ("to-f", "a symbolic link"), ("pipe", "special file")]
)
def test_remove_file_removes_nothing_but_files(connector: Connector, tree: Path, path: str, words: str) -> None:
    os.mkfifo(tree / "pipe")
    before = tree_of(tree)

    with pytest.raises(ToolError, match=words):
        connector.call("fs.remove_file", {"path": str(tree / path)})

    assert tree_of(tree) == before
