from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from connectors.core.connector import Connector
from connectors.core.files import content as content_limits
from connectors.core.outcomes import ToolError
from tests.connectors.trees import BACKUPS, tree_of


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_write_file_creates(connector: Connector, root: Path) -> None:
    result = connector.call("fs.write_file", {"path": "a.txt", "content": "hello"})

    mode = f"{stat.S_IMODE((root / 'a.txt').stat().st_mode):04o}"
    assert (root / "a.txt").read_text() == "hello"
    assert result == {
        "path": "a.txt",
        "sha256": sha("hello"),
        "mode": mode,
        "size": 5,
        "backup": None,
        "previous": {"exists": False, "kind": None, "sha256": None, "mode": None},
        "left": {"exists": True, "kind": "file", "sha256": sha("hello"), "mode": mode},
    }
    assert not (root / BACKUPS).exists()


def test_write_file_keeps_the_mode_and_backs_up_what_it_replaces(connector: Connector, root: Path) -> None:
    (root / "a.txt").write_text("old")
    (root / "a.txt").chmod(0o2751)

    result = connector.call("fs.write_file", {"path": "a.txt", "content": "new"})

    kept = root / BACKUPS / result["backup"]
    assert ((root / "a.txt").read_text(), stat.S_IMODE((root / "a.txt").stat().st_mode)) == ("new", 0o2751)
    assert (kept.read_text(), stat.S_IMODE(kept.stat().st_mode)) == ("old", 0o2751)
    assert result["previous"] == {"exists": True, "kind": "file", "sha256": sha("old"), "mode": "2751"}


def test_backup_directory_is_private_and_holds_a_note(connector: Connector, root: Path) -> None:
    (root / "a.txt").write_text("old")

    result = connector.call("fs.write_file", {"path": "./a.txt", "content": "new"})

    note = json.loads((root / BACKUPS / f"{result['backup']}.json").read_text())
    assert stat.S_IMODE((root / BACKUPS).stat().st_mode) == 0o700
    assert note.pop("at").endswith("+00:00")
    assert note == {"path": "a.txt", "sha256": sha("old"), "mode": result["previous"]["mode"], "reason": "write"}


def test_write_file_of_the_same_content_is_still_a_step(connector: Connector, root: Path) -> None:
    (root / "a.txt").write_text("same")

    result = connector.call("fs.write_file", {"path": "a.txt", "content": "same"})

    assert result["backup"] is not None
    assert result["previous"] == result["left"]


def test_write_file_decodes_base64(connector: Connector, root: Path) -> None:
    encoded = base64.b64encode(b"\x00\xff").decode()

    connector.call("fs.write_file", {"path": "a", "content": encoded, "encoding": "base64"})

    assert (root / "a").read_bytes() == b"\x00\xff"


def test_write_file_through_a_link_names_and_replaces_its_target(connector: Connector, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/a").write_text("old")
    (root / "link").symlink_to("d")
    (root / "direct").symlink_to("link/a")

    result = connector.call("fs.write_file", {"path": "direct", "content": "new"})

    assert result["path"] == "d/a"
    assert ((root / "d/a").read_text(), (root / "direct").is_symlink()) == ("new", True)


def test_write_file_through_a_link_to_nothing_makes_its_target(connector: Connector, root: Path) -> None:
    (root / "link").symlink_to("target")

    result = connector.call("fs.write_file", {"path": "link", "content": "x"})

    assert (result["path"], (root / "target").read_text(), (root / "link").is_symlink()) == ("target", "x", True)


@pytest.mark.parametrize("name", ["grün-文-🙂", "two\nlines", "a b", "-rf", "..a", "a\\b", "n" * 255])
def test_write_file_takes_any_name(connector: Connector, root: Path, name: str) -> None:
    result = connector.call("fs.write_file", {"path": name, "content": "x"})

    assert result["path"] == name
    assert (root / name).read_text() == "x"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"path": "missing/a", "content": ""},
            r"missing/a: the directory missing does not exist; make it with fs\.make",
        ),
        ({"path": "x/y/a", "content": ""}, r"x/y/a: the directory x/y does not exist; make it with fs\.make_dir"),
        ({"path": "file/a", "content": ""}, "file/a: something on the way to it is not a directory"),
        ({"path": "folder", "content": ""}, "folder: it is a directory, not a file"),
        ({"path": ".", "content": ""}, r"\.: it is a directory, not a file"),
        ({"path": "pipe", "content": ""}, "pipe: it is a special file"),
        ({"path": "n" * 256, "content": ""}, "n+…?: a name in it is too long"),
        ({"path": "a", "content": "%", "encoding": "base64"}, "argument content is not base64"),
        ({"path": "a", "content": "é", "encoding": "base64"}, "argument content cannot be written as base64"),
        ({"path": "a", "content": "\ud800"}, "argument content cannot be written as utf-8"),
        ({"path": "a", "content": "x", "encoding": "latin-1"}, "argument encoding must be one of utf-8, base64"),
        ({"path": "a"}, "argument content is required"),
        ({"path": "a", "content": 1}, "argument content must be a string, not integer"),
        ({"path": "a", "content": "", "mode": "0644"}, "unknown argument mode"),
    ],
)
def test_write_file_refuses_and_changes_nothing(
    connector: Connector, root: Path, arguments: dict[str, object], words: str
) -> None:
    (root / "folder").mkdir()
    (root / "file").write_text("x")
    os.mkfifo(root / "pipe")
    before = tree_of(root, is_with_backups=True)

    with pytest.raises(ToolError, match=rf"^{words}"):
        connector.call("fs.write_file", arguments)

    assert tree_of(root, is_with_backups=True) == before


def test_write_file_refuses_what_is_too_large(connector: Connector, root: Path) -> None:
    text = "x" * (content_limits.WRITE_LIMIT_BYTES + 1)

    with pytest.raises(ToolError, match="argument content is larger than the 10485760 bytes"):
        connector.call("fs.write_file", {"path": "a", "content": text})

    assert list(root.iterdir()) == []


def test_delete_file_moves_into_the_backups(connector: Connector, root: Path) -> None:
    (root / "a").write_text("x")
    (root / "a").chmod(0o640)
    inode = (root / "a").stat().st_ino

    result = connector.call("fs.delete_file", {"path": "./a"})

    kept = root / BACKUPS / result["backup"]
    assert not (root / "a").exists()
    assert (kept.read_text(), kept.stat().st_ino) == ("x", inode)
    assert result == {
        "path": "a",
        "backup": result["backup"],
        "previous": {"exists": True, "kind": "file", "sha256": sha("x"), "mode": "0640"},
        "left": {"exists": False, "kind": None, "sha256": None, "mode": None},
    }
    assert json.loads((root / BACKUPS / f"{result['backup']}.json").read_text())["reason"] == "delete"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing", "missing: it does not exist"),
        ("folder", "folder: it is a directory, not a file"),
        (".", r"\.: it is a directory, not a file"),
        ("link", "link: it is a symbolic link, not a file"),
        ("pipe", "pipe: it is a special file"),
    ],
)
def test_delete_file_refuses_and_changes_nothing(connector: Connector, root: Path, path: str, words: str) -> None:
    (root / "folder").mkdir()
    (root / "file").touch()
    (root / "link").symlink_to("file")
    os.mkfifo(root / "pipe")
    before = tree_of(root, is_with_backups=True)

    with pytest.raises(ToolError, match=rf"^{words}"):
        connector.call("fs.delete_file", {"path": path})

    assert tree_of(root, is_with_backups=True) == before


def test_make_dir_makes_parents_and_tells_which(connector: Connector, root: Path) -> None:
    (root / "a").mkdir()

    result = connector.call("fs.make_dir", {"path": "a/b//c/./d"})

    assert (root / "a/b/c/d").is_dir()
    assert result == {
        "path": "a/b/c/d",
        "created": ["a/b", "a/b/c", "a/b/c/d"],
        "top": "a/b",
        "previous": {"exists": False, "kind": None},
    }


@pytest.mark.parametrize("path", ["a", ".", "link"])
def test_make_dir_leaves_an_existing_one(connector: Connector, root: Path, path: str) -> None:
    (root / "a").mkdir()
    (root / "link").symlink_to("a")

    result = connector.call("fs.make_dir", {"path": path})

    canonical = "a" if path == "link" else path
    assert (result["created"], result["top"]) == ([], canonical)
    assert result["previous"] == {"exists": True, "kind": "directory"}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("file", "file: a file has that name already"),
        ("file/a/b", "file/a/b: something on the way to it is not a directory"),
        ("pipe", r"pipe: a special file \(a pipe, a socket or a device\) has that name already"),
        (f"new/deeper/{'n' * 256}", "new/deeper/n+…?: a name in it is too long"),
        ("a/" * 300, "a/a.*the path has more than 256 parts"),
        ("a" * 5000, "a+…: the path is longer than 4096 bytes"),
    ],
)
def test_make_dir_refuses_and_leaves_no_part(connector: Connector, root: Path, path: str, words: str) -> None:
    (root / "file").touch()
    os.mkfifo(root / "pipe")
    before = tree_of(root)

    with pytest.raises(ToolError, match=rf"^{words}"):
        connector.call("fs.make_dir", {"path": path})

    assert tree_of(root) == before


def test_move_file_moves_a_file(connector: Connector, root: Path) -> None:
    (root / "d").mkdir()
    (root / "a").write_text("x")
    (root / "a").chmod(0o600)

    result = connector.call("fs.move_file", {"source": "./a", "destination": "d//b"})

    assert ((root / "a").exists(), (root / "d/b").read_text()) == (False, "x")
    assert result == {
        "source": "a",
        "destination": "d/b",
        "moved": {"exists": True, "kind": "file", "sha256": sha("x"), "mode": "0600"},
    }


def test_move_file_moves_a_directory_with_its_content(connector: Connector, root: Path) -> None:
    (root / "d/e").mkdir(parents=True)
    (root / "d/e/a").write_text("x")

    result = connector.call("fs.move_file", {"source": "d", "destination": "f"})

    assert ((root / "f/e/a").read_text(), (root / "d").exists()) == ("x", False)
    assert result["moved"]["kind"] == "directory"


@pytest.mark.parametrize(
    ("source", "destination", "words"),
    [
        ("missing", "b", "missing: it does not exist"),
        ("a", "taken", "taken: the name is taken"),
        ("a", "folder", "folder: the name is taken"),
        ("a", "dangling", "dangling: the name is taken"),
        ("a", "a", "a: the name is taken"),
        ("a", "missing/b", r"missing/b: the directory missing does not exist; make it with fs\.make_dir"),
        ("a", "taken/b", "taken/b: something on the way to it is not a directory"),
        ("link", "b", "link: it is a symbolic link, not a file or a directory"),
        ("pipe", "b", "pipe: it is a special file"),
        ("folder", "folder/in/itself", "folder/in/itself: the directory folder/in does not exist"),
        ("folder", "folder/itself", "folder/itself: a directory cannot be moved into itself"),
        (".", "b", "the root itself cannot be moved"),
        ("a", ".", r"\.: the name is taken"),
    ],
)
def test_move_file_refuses_and_changes_nothing(
    connector: Connector, root: Path, source: str, destination: str, words: str
) -> None:
    (root / "a").write_text("x")
    (root / "taken").write_text("y")
    (root / "folder").mkdir()
    (root / "link").symlink_to("a")
    (root / "dangling").symlink_to("nothing")
    os.mkfifo(root / "pipe")
    before = tree_of(root)

    with pytest.raises(ToolError, match=rf"^{words}"):
        connector.call("fs.move_file", {"source": source, "destination": destination})

    assert tree_of(root) == before
