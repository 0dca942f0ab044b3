from __future__ import annotations

import base64
import hashlib
import os
import socket
from pathlib import Path

import pytest

from connectors.core.connector import Connector
from connectors.core.files import reading
from connectors.core.outcomes import ToolError

ABSENT = {"exists": False, "kind": None, "sha256": None, "mode": None}


def test_read_file_answers_text(connector: Connector, root: Path) -> None:
    (root / "a.txt").write_bytes("grün\r\n\0".encode())
    (root / "a.txt").chmod(0o640)

    answer = connector.call("fs.read_file", {"path": "./a.txt"})

    assert answer == {
        "path": "a.txt",
        "content": "grün\r\n\0",
        "encoding": "utf-8",
        "size": 8,
        "sha256": hashlib.sha256("grün\r\n\0".encode()).hexdigest(),
        "mode": "0640",
    }


def test_read_file_answers_base64_for_what_is_not_utf_8(connector: Connector, root: Path) -> None:
    (root / "a.bin").write_bytes(b"\xff\xfe\x00")

    answer = connector.call("fs.read_file", {"path": "a.bin"})

    assert answer["encoding"] == "base64"
    assert base64.b64decode(answer["content"]) == b"\xff\xfe\x00"


def test_read_file_follows_a_link_inside_the_root(connector: Connector, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/a.txt").write_text("x")
    (root / "link").symlink_to("d/a.txt")

    assert connector.call("fs.read_file", {"path": "link"})["path"] == "d/a.txt"


def test_read_file_refuses_what_is_too_large(connector: Connector, root: Path) -> None:
    with (root / "big").open("wb") as file:
        file.truncate(reading.READ_LIMIT_BYTES + 1)

    with pytest.raises(ToolError, match=r"^big: the file is larger than 10485760 bytes"):
        connector.call("fs.read_file", {"path": "big"})


def test_read_file_reads_up_to_the_limit(connector: Connector, root: Path) -> None:
    with (root / "big").open("wb") as file:
        file.truncate(reading.READ_LIMIT_BYTES)

    assert connector.call("fs.read_file", {"path": "big"})["size"] == reading.READ_LIMIT_BYTES


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing", "missing: it does not exist"),
        ("missing/deeper", "missing/deeper: it does not exist"),
        ("folder", "folder: it is a directory, not a file"),
        (".", r"\.: it is a directory, not a file"),
        ("file/deeper", "file/deeper: it does not exist"),
    ],
)
def test_read_file_refuses(connector: Connector, root: Path, path: str, words: str) -> None:
    (root / "folder").mkdir()
    (root / "file").touch()

    with pytest.raises(ToolError, match=rf"^{words}"):
        connector.call("fs.read_file", {"path": path})


def test_read_file_does_not_wait_for_a_pipe(connector: Connector, root: Path) -> None:
    os.mkfifo(root / "pipe")

    with pytest.raises(ToolError, match=r"^pipe: it is a special file"):
        connector.call("fs.read_file", {"path": "pipe"})


def test_stat_tells_the_kinds_apart(connector: Connector, root: Path) -> None:
    (root / "file").write_text("x")
    (root / "file").chmod(0o4751)
    (root / "folder").mkdir(mode=0o750)
    (root / "link").symlink_to("file")
    os.mkfifo(root / "pipe", 0o600)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))

    kinds = {name: connector.call("fs.stat", {"path": name}) for name in ("file", "folder", "link", "pipe", "socket")}

    assert kinds["file"] == {
        "exists": True,
        "kind": "file",
        "sha256": hashlib.sha256(b"x").hexdigest(),
        "mode": "4751",
    }
    assert kinds["folder"] == {"exists": True, "kind": "directory", "sha256": None, "mode": "0750"}
    assert kinds["link"]["kind"] == "symlink"
    assert (kinds["pipe"]["kind"], kinds["pipe"]["mode"]) == ("other", "0600")
    assert kinds["socket"]["kind"] == "other"


@pytest.mark.parametrize("path", ["missing", "missing/deeper", "file/deeper"])
def test_stat_answers_absence(connector: Connector, root: Path, path: str) -> None:
    (root / "file").touch()

    assert connector.call("fs.stat", {"path": path}) == ABSENT


def test_stat_describes_the_root(connector: Connector) -> None:
    assert connector.call("fs.stat", {"path": "."})["kind"] == "directory"


def test_stat_does_not_follow_a_dangling_link(connector: Connector, root: Path) -> None:
    (root / "link").symlink_to("missing")

    assert connector.call("fs.stat", {"path": "link"})["kind"] == "symlink"


def test_list_dir_lists_by_name_and_hides_its_own(connector: Connector, root: Path) -> None:
    connector.call("fs.write_file", {"path": "b", "content": "old"})
    connector.call("fs.write_file", {"path": "b", "content": "newer"})
    (root / "a").mkdir(mode=0o755)
    (root / ".reversi-tmp-left").touch()
    (root / "c").symlink_to("b")

    answer = connector.call("fs.list_dir", {})

    assert (root / ".reversi-backups").is_dir()
    assert (answer["path"], answer["unnameable"], answer["truncated"]) == (".", 0, False)
    assert [(entry["name"], entry["kind"], entry["size"]) for entry in answer["entries"]] == [
        ("a", "directory", None),
        ("b", "file", 5),
        ("c", "symlink", None),
    ]


def test_list_dir_counts_names_that_no_path_can_spell(connector: Connector, root: Path) -> None:
    (Path(os.fsdecode(bytes(root) + b"/\xff"))).touch()
    (root / "a").touch()

    answer = connector.call("fs.list_dir", {"path": "."})

    assert ([entry["name"] for entry in answer["entries"]], answer["unnameable"]) == (["a"], 1)


def test_list_dir_cuts_a_long_list_and_says_so(connector: Connector, root: Path) -> None:
    for number in range(reading.LIST_LIMIT_ENTRIES + 1):
        (root / str(number)).touch()

    answer = connector.call("fs.list_dir", {"path": "."})

    assert (len(answer["entries"]), answer["truncated"]) == (reading.LIST_LIMIT_ENTRIES, True)


@pytest.mark.parametrize(
    ("path", "words"), [("missing", "it does not exist"), ("file", "it is a file, not a directory")]
)
def test_list_dir_refuses(connector: Connector, root: Path, path: str, words: str) -> None:
    (root / "file").touch()

    with pytest.raises(ToolError, match=rf"^{path}: {words}"):
        connector.call("fs.list_dir", {"path": path})


@pytest.mark.parametrize("tool", ["fs.read_file", "fs.list_dir", "fs.stat"])
def test_reads_change_nothing(connector: Connector, root: Path, tool: str) -> None:
    with pytest.raises(ToolError):
        connector.call(tool, {"path": "../a"})

    assert list(root.iterdir()) == []
