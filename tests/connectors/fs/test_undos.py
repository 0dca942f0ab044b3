from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.catalog import fs
from connectors.core.connector import Connector
from connectors.core.outcomes import ToolError
from connectors.core.tool import CallContext
from tests.connectors.trees import BACKUPS, reads_back, tree_of, undo_arguments

OVERWRITE = CallContext(is_overwrite_allowed=True)

STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "write a new file": ("fs.write_file", {"path": "d/new", "content": "x"}),
    "write over a file": ("fs.write_file", {"path": "d/old", "content": "x"}),
    "write over a file through a link": ("fs.write_file", {"path": "link", "content": "x"}),
    "write the same content": ("fs.write_file", {"path": "d/old", "content": "old"}),
    "write an empty file": ("fs.write_file", {"path": "empty", "content": "x"}),
    "delete a file": ("fs.delete_file", {"path": "d/old"}),
    "make a directory": ("fs.make_dir", {"path": "e"}),
    "make nested directories": ("fs.make_dir", {"path": "d/e/f/g"}),
    "make a directory that exists": ("fs.make_dir", {"path": "d"}),
    "move a file": ("fs.move_file", {"source": "d/old", "destination": "moved"}),
    "move a directory": ("fs.move_file", {"source": "d", "destination": "moved"}),
}


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "d").mkdir(mode=0o750)
    (root / "d/old").write_text("old")
    (root / "d/old").chmod(0o2751)
    (root / "empty").touch()
    (root / "link").symlink_to("d/old")
    return root


@pytest.mark.parametrize("step", STEPS)
def test_undo_restores_exactly_and_twice_is_once(connector: Connector, tree: Path, step: str) -> None:
    tool, arguments = STEPS[step]
    before = tree_of(tree)

    result = connector.call(tool, arguments)
    undo, mapped = undo_arguments(connector, tool, result)
    is_shown_too_early = reads_back(connector, tool, result)
    connector.call(undo, mapped)
    after_first = (tree_of(tree), reads_back(connector, tool, result))
    again = connector.call(undo, mapped)

    assert after_first == (before, True)
    assert (tree_of(tree), reads_back(connector, tool, result)) == (before, True)
    assert again.get("already_restored", again.get("already_removed")) is True
    assert is_shown_too_early is (step in ("write the same content", "make a directory that exists"))


@pytest.mark.parametrize("step", ["write over a file", "delete a file", "move a file"])
def test_undo_takes_files_of_any_size(connector: Connector, tree: Path, step: str) -> None:
    """Content beyond what one call reads or writes is streamed into the backups and back."""
    with (tree / "d/old").open("wb") as file:
        file.truncate(12 * 1024 * 1024 + 1)
        file.write(b"x")
    before = tree_of(tree)
    tool, arguments = STEPS[step]

    result = connector.call(tool, arguments)
    connector.call(*undo_arguments(connector, tool, result))

    assert tree_of(tree) == before


def test_restoring_keeps_the_backup_and_the_modification_time(connector: Connector, tree: Path) -> None:
    os.utime(tree / "d/old", ns=(10**18, 10**18 + 5))
    result = connector.call("fs.write_file", {"path": "d/old", "content": "x"})

    connector.call(*undo_arguments(connector, "fs.write_file", result))

    assert (tree / "d/old").stat().st_mtime_ns == 10**18 + 5
    assert (tree / BACKUPS / result["backup"]).read_text() == "old"


def test_undo_works_with_another_process_own_objects(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.delete_file", {"path": "d/old"})

    fs.build(tree).call(*undo_arguments(connector, "fs.delete_file", result))

    assert (tree / "d/old").read_text() == "old"


def change(tree: Path) -> None:
    (tree / "d/old").write_text("newer")


def change_mode(tree: Path) -> None:
    (tree / "d/old").chmod(0o600)


def remove(tree: Path) -> None:
    (tree / "d/old").unlink()


def replace_by_directory(tree: Path) -> None:
    (tree / "d/old").unlink()
    (tree / "d/old").mkdir()


def replace_by_link(tree: Path) -> None:
    (tree / "d/old").unlink()
    (tree / "d/old").symlink_to("../empty")


def replace_by_pipe(tree: Path) -> None:
    (tree / "d/old").unlink()
    os.mkfifo(tree / "d/old")


@pytest.mark.parametrize("newer", [change, change_mode, remove, replace_by_directory, replace_by_link, replace_by_pipe])
def test_restore_leaves_newer_work_alone(connector: Connector, tree: Path, newer: Callable[[Path], None]) -> None:
    result = connector.call("fs.write_file", {"path": "d/old", "content": "x"})
    newer(tree)
    before = tree_of(tree, is_with_backups=True)

    with pytest.raises(ToolError, match=r"^changed since: d/old is neither what the call left nor what stood before"):
        connector.call(*undo_arguments(connector, "fs.write_file", result))

    assert tree_of(tree, is_with_backups=True) == before


@pytest.mark.parametrize("newer", [change, change_mode, remove])
def test_restore_goes_over_newer_work_when_allowed(
    connector: Connector, tree: Path, newer: Callable[[Path], None]
) -> None:
    before = tree_of(tree)
    result = connector.call("fs.write_file", {"path": "d/old", "content": "x"})
    newer(tree)
    was = (tree / "d/old").read_text() if newer is not remove else None

    answer = connector.call(*undo_arguments(connector, "fs.write_file", result), OVERWRITE)

    kept = answer["overwritten_backup"]
    assert tree_of(tree) == before
    assert (kept and (tree / BACKUPS / kept).read_text()) == was


@pytest.mark.parametrize("newer", [replace_by_directory, replace_by_link, replace_by_pipe])
def test_restore_replaces_nothing_but_files_even_when_allowed(
    connector: Connector, tree: Path, newer: Callable[[Path], None]
) -> None:
    result = connector.call("fs.write_file", {"path": "d/old", "content": "x"})
    newer(tree)
    before = tree_of(tree, is_with_backups=True)

    with pytest.raises(ToolError, match=r"^d/old: a .* stands there now, which is never replaced"):
        connector.call(*undo_arguments(connector, "fs.write_file", result), OVERWRITE)

    assert tree_of(tree, is_with_backups=True) == before


def test_undoing_a_new_file_leaves_newer_content_alone(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.write_file", {"path": "new", "content": "x"})
    (tree / "new").write_text("newer")

    with pytest.raises(ToolError, match=r"^changed since: new "):
        connector.call(*undo_arguments(connector, "fs.write_file", result))
    connector.call(*undo_arguments(connector, "fs.write_file", result), OVERWRITE)

    assert not (tree / "new").exists()


def test_undoing_a_deletion_leaves_a_new_file_alone(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.delete_file", {"path": "d/old"})
    (tree / "d/old").write_text("newer")

    with pytest.raises(ToolError, match=r"^changed since: d/old "):
        connector.call(*undo_arguments(connector, "fs.delete_file", result))

    assert (tree / "d/old").read_text() == "newer"


def test_restore_says_that_the_directory_is_gone(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.delete_file", {"path": "d/old"})
    (tree / "d").rmdir()

    with pytest.raises(ToolError, match=r"^d/old: the directory it was in no longer exists"):
        connector.call(*undo_arguments(connector, "fs.delete_file", result))


def test_restore_says_that_the_backup_is_gone(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.delete_file", {"path": "d/old"})
    (tree / BACKUPS / result["backup"]).unlink()

    with pytest.raises(ToolError, match=r"^the backup [0-9a-f]{32} is gone"):
        connector.call(*undo_arguments(connector, "fs.delete_file", result))

    assert list((tree / "d").iterdir()) == []


def test_restore_refuses_a_backup_that_was_altered(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.write_file", {"path": "d/old", "content": "x"})
    (tree / BACKUPS / result["backup"]).write_text("forged")
    before = tree_of(tree)

    with pytest.raises(ToolError, match=r"^d/old: what was kept of it no longer has the content that was kept"):
        connector.call(*undo_arguments(connector, "fs.write_file", result))

    assert tree_of(tree) == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backup": "../secret"}, "argument backup does not have the form"),
        ({"backup": None}, "d/old: to put the file back its backup, sha256 and mode are needed"),
        ({"previous": {"exists": True, "sha256": None, "mode": None}}, "d/old: to put the file back its backup"),
        ({"previous": {"exists": True, "sha256": None, "mode": "9"}}, "argument previous.mode does not have the form"),
        ({"previous": {"exists": "yes", "sha256": None, "mode": None}}, "argument previous.exists must be a boolean"),
        ({"left": {}}, "argument left.exists is required"),
        ({"left": {"exists": True, "sha256": None, "mode": None, "size": 1}}, "unknown argument left.size"),
    ],
)
def test_restore_checks_its_arguments(connector: Connector, tree: Path, changes: dict[str, Any], words: str) -> None:
    result = connector.call("fs.write_file", {"path": "d/old", "content": "x"})
    tool, arguments = undo_arguments(connector, "fs.write_file", result)
    before = tree_of(tree)

    with pytest.raises(ToolError, match=rf"^{words}"):
        connector.call(tool, {**arguments, **changes})

    assert tree_of(tree) == before


def test_remove_dir_does_not_follow_a_moved_parent(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.make_dir", {"path": "d/e"})
    (tree / "d").rename(tree / "f")
    (tree / "d").symlink_to("f")

    with pytest.raises(ToolError, match=r"^changed since: d/e is no longer the directory"):
        connector.call(*undo_arguments(connector, "fs.make_dir", result))

    assert (tree / "f/e").is_dir()


def test_remove_dir_names_the_first_leftover_and_removes_nothing(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.make_dir", {"path": "a/b/c"})
    (tree / "a/z").touch()
    (tree / "a/k").mkdir()

    with pytest.raises(ToolError, match=r"^changed since: a/k stands in a directory that the call made"):
        connector.call(*undo_arguments(connector, "fs.make_dir", result))
    with pytest.raises(ToolError, match=r"^a/k stands in a directory that the call made"):
        connector.call(*undo_arguments(connector, "fs.make_dir", result), OVERWRITE)

    assert (tree / "a/b/c").is_dir()


def test_remove_dir_carries_on_where_some_are_gone(connector: Connector, tree: Path) -> None:
    result = connector.call("fs.make_dir", {"path": "a/b/c"})
    (tree / "a/b/c").rmdir()

    answer = connector.call(*undo_arguments(connector, "fs.make_dir", result))

    assert answer["removed"] == ["a/b", "a"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_remove_dir_removes_no_other_thing(connector: Connector, tree: Path, kind: str) -> None:
    result = connector.call("fs.make_dir", {"path": "a"})
    (tree / "a").rmdir()
    (tree / "a").touch() if kind == "file" else (tree / "a").symlink_to("d")
    before = tree_of(tree)

    with pytest.raises(ToolError, match=r"^changed since: a is no longer the directory"):
        connector.call(*undo_arguments(connector, "fs.make_dir", result))

    assert tree_of(tree) == before


@pytest.mark.parametrize("created", [["d"], ["a/b"], ["."], [""], ["./a"], ["a", "a/../d"]])
def test_remove_dir_removes_only_what_lies_on_its_path(connector: Connector, tree: Path, created: list[str]) -> None:
    (tree / "a").mkdir()

    with pytest.raises(ToolError, match=r"^argument created: "):
        connector.call("fs.remove_dir", {"path": "a", "created": created})

    assert (tree / "a").is_dir()


def move_arguments(connector: Connector, source: str, destination: str) -> tuple[str, dict[str, Any]]:
    result = connector.call("fs.move_file", {"source": source, "destination": destination})
    return undo_arguments(connector, "fs.move_file", result)


def test_unmove_leaves_newer_content_alone_unless_allowed(connector: Connector, tree: Path) -> None:
    undo = move_arguments(connector, "d/old", "moved")
    (tree / "moved").write_text("newer")

    with pytest.raises(ToolError, match=r"^changed since: moved is no longer what was moved there"):
        connector.call(*undo)
    assert (tree / "moved").read_text() == "newer"
    with pytest.raises(ToolError, match=r"^moved is no longer what was moved there"):
        connector.call(*undo, OVERWRITE)

    assert ((tree / "d/old").exists(), (tree / "moved").read_text()) == (False, "newer")


def test_unmove_never_replaces_what_took_the_old_name(connector: Connector, tree: Path) -> None:
    undo = move_arguments(connector, "d/old", "moved")
    (tree / "d/old").write_text("theirs")
    before = tree_of(tree)

    with pytest.raises(ToolError, match=r"^changed since: d/old is taken by something else"):
        connector.call(*undo)
    with pytest.raises(ToolError, match=r"^d/old is taken by something else"):
        connector.call(*undo, OVERWRITE)

    assert tree_of(tree) == before


def test_unmove_tells_a_copy_from_what_was_moved_back(connector: Connector, tree: Path) -> None:
    undo = move_arguments(connector, "empty", "moved")
    (tree / "empty").touch(mode=stat.S_IMODE((tree / "moved").stat().st_mode))

    with pytest.raises(ToolError, match=r"^changed since: empty is taken by something else"):
        connector.call(*undo)

    assert (tree / "moved").exists()


def test_unmove_says_that_the_thing_is_gone(connector: Connector, tree: Path) -> None:
    undo = move_arguments(connector, "d/old", "moved")
    (tree / "moved").unlink()

    with pytest.raises(ToolError, match=r"^changed since: moved no longer exists"):
        connector.call(*undo)
    with pytest.raises(ToolError, match=r"^moved no longer exists"):
        connector.call(*undo, OVERWRITE)


def test_unmove_says_that_the_old_directory_is_gone(connector: Connector, tree: Path) -> None:
    undo = move_arguments(connector, "d/old", "moved")
    (tree / "d").rmdir()

    with pytest.raises(ToolError, match=r"^d/old: the directory it was in no longer exists"):
        connector.call(*undo)


def test_unmove_moves_a_directory_with_what_came_into_it(connector: Connector, tree: Path) -> None:
    undo = move_arguments(connector, "d", "moved")
    (tree / "moved/new").touch()

    connector.call(*undo)

    assert sorted(path.name for path in (tree / "d").iterdir()) == ["new", "old"]


def test_deletion_with_backups_on_another_file_system(root: Path) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == root.stat().st_dev:
        pytest.skip("no second file system to keep backups on")
    folder = elsewhere / f"reversi-test-{os.getpid()}"
    folder.mkdir()
    try:
        connector = fs.build(root, folder / "kept")
        (root / "a").write_text("x")
        (root / "a").chmod(0o640)
        before = tree_of(root)

        result = connector.call("fs.delete_file", {"path": "a"})
        left = tree_of(root)
        connector.call(*undo_arguments(connector, "fs.delete_file", result))

        assert (left, tree_of(root)) == ({}, before)
        assert len(list((folder / "kept").iterdir())) == 2
    finally:
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if stat.S_ISDIR(path.lstat().st_mode) else path.unlink()
        folder.rmdir()
