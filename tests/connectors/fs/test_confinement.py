from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connectors.catalog import fs
from connectors.core import files
from connectors.core.connector import Connector
from connectors.core.outcomes import ToolError
from reversi_sdk.errors import InvalidInput
from tests.connectors.trees import tree_of

ABSENT = {"exists": False, "sha256": None, "mode": None}
PRESENT = {"exists": True, "sha256": "0" * 64, "mode": "0644"}


def calls_on(path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every tool, once for each of its arguments that can name `path`."""
    yield "fs.read_file", {"path": path}
    yield "fs.list_dir", {"path": path}
    yield "fs.stat", {"path": path}
    yield "fs.write_file", {"path": path, "content": "x"}
    yield "fs.delete_file", {"path": path}
    yield "fs.make_dir", {"path": path}
    yield "fs.move_file", {"source": path, "destination": "moved"}
    yield "fs.move_file", {"source": "plain", "destination": path}
    yield "fs.restore_file", {"path": path, "backup": None, "previous": ABSENT, "left": PRESENT}
    yield "fs.restore_file", {"path": path, "backup": "0" * 32, "previous": PRESENT, "left": ABSENT}
    yield "fs.remove_dir", {"path": path, "created": []}
    yield "fs.remove_dir", {"path": path, "created": [path]}
    yield "fs.unmove_file", {"source": path, "destination": "plain", "moved": PRESENT}
    yield "fs.unmove_file", {"source": "back", "destination": path, "moved": PRESENT}


REFUSED = {
    "empty": "",
    "absolute": "/etc/passwd",
    "absolute into the root": "{root}/plain",
    "parent": "..",
    "parent of a file": "../outside/secret.txt",
    "parent in the middle": "folder/../plain",
    "parent at the end": "folder/..",
    "NUL": "pl\0ain",
    "lone surrogate": "pl\ud800ain",
    "byte that is no text": "pl\udcffain",
    "link out": "out/secret.txt",
    "link to a file outside": "out_file",
    "link to the directory outside": "out",
    "link to the parent": "up",
    "link through the parent and back": "round/plain",
    "absolute link out": "absolute_out/secret.txt",
    "chain of links out": "chain1/secret.txt",
    "link out behind a link inside": "inside/out/secret.txt",
    "loop": "loop1",
    "loop on the way": "loop1/plain",
    "link to a name that is no text": "no_text/a",
    "link that climbs out of nothing": "climbs/a",
    "backup directory": ".reversi-backups",
    "in the backup directory": ".reversi-backups/a",
    "backup directory by a dot": "./.reversi-backups",
    "backup directory by a parent": "folder/../.reversi-backups",
    "backup directory by a link": "to_backups",
    "in the backup directory by a link": "to_backups/a",
    "temporary file": ".reversi-tmp-1",
    "temporary file below": "folder/.reversi-tmp-1",
}


@pytest.fixture
def tree(root: Path, outside: Path) -> Path:
    """A root with every kind of link that leads where it must not."""
    (root / "plain").write_text("plain")
    (root / "folder").mkdir()
    for name in ("out", "up", "round"):
        (root / name).symlink_to({"out": "../outside", "up": "..", "round": "../root"}[name])
    (root / "out_file").symlink_to("../outside/secret.txt")
    (root / "absolute_out").symlink_to(outside)
    (root / "chain1").symlink_to("chain2")
    (root / "chain2").symlink_to("folder/chain3")
    (root / "folder/chain3").symlink_to("../../outside")
    (root / "folder/out").symlink_to("../../outside")
    (root / "inside").symlink_to("folder")
    (root / "loop1").symlink_to("loop2")
    (root / "loop2").symlink_to("loop1")
    (root / "no_text").symlink_to(b"\xff".decode("utf-8", "surrogateescape"))
    (root / "climbs").symlink_to("nothing/../folder")
    (root / "to_backups").symlink_to(".reversi-backups")
    (root / ".reversi-backups").mkdir(mode=0o700)
    (root / ".reversi-backups/a").write_text("kept")
    (root / ".reversi-tmp-1").touch()
    Path(os.fsdecode(bytes(root) + b"/\xff")).mkdir()
    return root


@pytest.mark.parametrize("case", REFUSED)
def test_every_tool_refuses_and_changes_nothing(connector: Connector, tree: Path, case: str) -> None:
    path = REFUSED[case].format(root=tree)
    before = tree_of(tree.parent, is_with_backups=True)

    for tool, arguments in calls_on(path):
        with pytest.raises(ToolError) as refusal:
            connector.call(tool, arguments)
        assert str(refusal.value).isprintable()

    assert tree_of(tree.parent, is_with_backups=True) == before


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("absolute", "/etc/passwd: absolute paths are refused"),
        ("parent in the middle", r"folder/\.\./plain: a path must not contain \.\."),
        ("NUL", r"'pl\\x00ain': a path must not contain a NUL character"),
        ("link out", "out/secret.txt: a symbolic link in it leads outside the root"),
        ("chain of links out", "chain1/secret.txt: a symbolic link in it leads outside the root"),
        ("loop", "loop1: too many symbolic links, or a loop of them"),
        ("backup directory by a link", "to_backups: the backup directory is reserved"),
        ("link that climbs out of nothing", "climbs/a: a symbolic link in it climbs out"),
    ],
)
def test_refusals_name_the_path_and_the_reason(connector: Connector, tree: Path, case: str, words: str) -> None:
    with pytest.raises(ToolError, match=rf"^{words}"):
        connector.call("fs.stat", {"path": REFUSED[case]})


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("link", "d"),
        ("link", "./d/"),
        ("link", "e/../d"),
        ("link", "{root}/d"),
        ("e/link", "../d"),
        ("e/link", "{root}/d"),
        ("link", "other"),
    ],
)
def test_links_inside_the_root_are_followed(connector: Connector, root: Path, link: str, target: str) -> None:
    (root / "d").mkdir()
    (root / "e").mkdir()
    (root / "d/a").write_text("x")
    (root / "other").symlink_to("d")
    (root / link).symlink_to(target.format(root=root))

    assert connector.call("fs.read_file", {"path": f"{link}/a"})["path"] == "d/a"
    assert connector.call("fs.write_file", {"path": f"{link}/new", "content": ""})["path"] == "d/new"
    assert connector.call("fs.make_dir", {"path": f"{link}/x/y"})["created"] == ["d/x", "d/x/y"]
    assert connector.call("fs.list_dir", {"path": link})["path"] == "d"
    assert connector.call("fs.stat", {"path": f"{link}/a"})["exists"] is True
    moved = connector.call("fs.move_file", {"source": f"{link}/a", "destination": f"{link}/b"})
    assert (moved["source"], moved["destination"]) == ("d/a", "d/b")
    assert connector.call("fs.delete_file", {"path": f"{link}/b"})["path"] == "d/b"


def test_root_may_be_given_by_a_link(root: Path) -> None:
    (root.parent / "alias").symlink_to("root")
    (root / "a").write_text("x")

    assert fs.build(root.parent / "alias").call("fs.read_file", {"path": "a"})["content"] == "x"


def test_own_backup_directory_is_reserved_wherever_it_lies(root: Path) -> None:
    (root / "sub").mkdir()
    connector = fs.build(root, root / "sub/kept")
    connector.call("fs.write_file", {"path": "a", "content": "1"})
    connector.call("fs.write_file", {"path": "a", "content": "2"})
    before = tree_of(root)

    for path in ("sub/kept", "sub/kept/a", ".reversi-backups"):
        with pytest.raises(ToolError, match="reserved"):
            connector.call("fs.stat", {"path": path})
    with pytest.raises(ToolError, match=r"^sub: the backup directory lies in it"):
        connector.call("fs.move_file", {"source": "sub", "destination": "b"})

    assert tree_of(root) == before
    assert len(list((root / "sub/kept").iterdir())) == 2
    assert connector.call("fs.list_dir", {"path": "sub"})["entries"] == []


def test_backup_directory_is_known_by_identity_too(root: Path) -> None:
    """A second way to the same directory, such as a bind mount, has another name and is the same directory."""
    (root.parent / "alias").symlink_to("root")
    (root / "kept").mkdir()
    (root / "kept/a").touch()
    confined = files.ConfinedRoot(root, root.parent / "alias/kept")

    for path in ("kept", "kept/a"):
        with (
            pytest.raises(ToolError, match="the backup directory is reserved"),
            confined.locate(path, is_last_followed=True),
        ):
            pytest.fail("the walk went into the backup directory")
    with confined.locate(".", is_last_followed=True) as place:
        assert files.list_entries(confined, place) == ([], 0, False)


def test_links_do_not_lead_deeper_than_paths_may(connector: Connector, root: Path) -> None:
    (root / ("d/" * 300)).mkdir(parents=True)
    (root / "shortcut").symlink_to("d/" * 200)

    assert connector.call("fs.stat", {"path": "shortcut/d"})["exists"] is True
    with pytest.raises(ToolError, match="the path has more than 256 parts"):
        connector.call("fs.stat", {"path": "shortcut/" + "d/" * 90})


def test_backup_directory_may_lie_outside(root: Path, outside: Path) -> None:
    connector = fs.build(root, outside / "kept")
    (root / "a").write_text("x")

    result = connector.call("fs.delete_file", {"path": "a"})

    assert (outside / "kept" / result["backup"]).read_text() == "x"
    assert list(root.iterdir()) == []


def test_backup_directory_that_is_a_link_is_refused(connector: Connector, root: Path, outside: Path) -> None:
    (root / ".reversi-backups").symlink_to(outside)
    (root / "a").write_text("old")

    with pytest.raises(ToolError, match=r"^the backup directory cannot be used"):
        connector.call("fs.write_file", {"path": "a", "content": "new"})

    assert (root / "a").read_text() == "old"
    assert sorted(path.name for path in outside.iterdir()) == ["secret.txt"]


@pytest.mark.parametrize(
    ("folder", "backups", "words"),
    [
        ("missing", None, "the root .* is not a directory"),
        ("root/plain", None, "the root .* is not a directory"),
        ("root", ".", "must not be the root or contain it"),
        ("root", "root", "must not be the root or contain it"),
        ("root", "missing/kept", "must be in a directory that exists"),
        ("ro\0ot", None, "cannot be found"),
    ],
)
def test_build_refuses(tree: Path, folder: str, backups: str | None, words: str) -> None:
    parent = tree.parent

    with pytest.raises(InvalidInput, match=words):
        fs.build(parent / folder, parent / backups if backups else None)
