"""The process dies, or the disk is full, in the middle of a tool: nothing is lost, and no half is left."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.catalog import fs
from connectors.core.connector import Connector
from connectors.core.files.renaming import Name, rename_by_link
from connectors.core.outcomes import EffectUncertainError, ToolError
from tests.connectors.trees import BACKUPS, tree_of

# Runs one tool in a process of its own that kills itself at the n-th system event of the given kind.
CHILD = """
import json, os, signal, sys
from pathlib import Path
from connectors.catalog import fs

root, event, count, tool, arguments = sys.argv[1:]
connector = fs.build(Path(root))
left = int(count)

def hook(name, args):
    global left
    if name == event and (event != "open" or ".reversi-tmp-" in str(args[0])):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
print(json.dumps(connector.call(tool, json.loads(arguments))))
"""


def killed_at(root: Path, event: str, count: int, tool: str, arguments: dict[str, Any]) -> int:
    command = [sys.executable, "-c", CHILD, str(root), event, str(count), tool, json.dumps(arguments)]
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode


@pytest.mark.parametrize("event", ["open", "os.chown", "os.rename"])
def test_kill_during_an_overwrite_loses_nothing(root: Path, event: str) -> None:
    (root / "a").write_text("old")

    # The backup's owner is set first, the temporary file's second.
    count = 2 if event == "os.chown" else 1
    code = killed_at(root, event, count, "fs.write_file", {"path": "a", "content": "new"})

    connector = fs.build(root)
    entries = connector.call("fs.list_dir", {})["entries"]
    kept = [path for path in (root / BACKUPS).iterdir() if path.suffix != ".json"]
    assert code == -signal.SIGKILL
    assert (root / "a").read_text() == "old"
    assert [path.read_text() for path in kept] == ["old"]
    assert [entry["name"] for entry in entries] == ["a"]


def test_note_of_an_interrupted_deletion_is_all_that_a_person_needs(connector: Connector, root: Path) -> None:
    """The deletion happened and its answer was lost: the note in the backup directory settles it."""
    (root / "a").write_text("x")
    before = tree_of(root)
    connector.call("fs.delete_file", {"path": "a"})

    (note_file,) = (root / BACKUPS).glob("*.json")
    note = json.loads(note_file.read_text())
    previous = {"exists": True, "sha256": note["sha256"], "mode": note["mode"]}
    left = {"exists": False, "sha256": None, "mode": None}
    arguments = {"path": note["path"], "backup": note_file.stem, "previous": previous, "left": left}
    connector.call("fs.restore_file", arguments)

    assert tree_of(root) == before


def in_child(prepare: Callable[[], None], work: Callable[[], object]) -> str:
    """Do `work` in a child process that `prepare` has put under limits, and return what it raised."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        report = "nothing was raised"
        try:
            prepare()
            work()
        except BaseException as error:  # noqa: BLE001 - the child reports whatever happens and must never return
            report = f"{type(error).__name__}: {error}"
        os.write(write_end, report.encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as reader:
        report = reader.read().decode()
    os.waitpid(child, 0)
    return report


def without_large_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def without_privileges() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_full_disk_leaves_the_old_file_and_no_part(connector: Connector, root: Path) -> None:
    (root / "a").write_text("old")
    before = tree_of(root)

    report = in_child(
        without_large_files, lambda: connector.call("fs.write_file", {"path": "a", "content": "x" * 10_000})
    )

    assert report == "ToolError: a: the file would be larger than the system allows"
    assert tree_of(root) == before
    assert list((root / BACKUPS).iterdir()) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_full_disk_during_the_backup_leaves_no_part(connector: Connector, root: Path) -> None:
    (root / "a").write_text("x" * 10_000)
    before = tree_of(root)

    report = in_child(without_large_files, lambda: connector.call("fs.write_file", {"path": "a", "content": "new"}))

    assert report == "ToolError: a: the file would be larger than the system allows"
    assert tree_of(root) == before
    assert list((root / BACKUPS).iterdir()) == []


@pytest.fixture
def locked() -> Iterator[Path]:
    """A root that anybody may enter, with things in it that nobody may change."""
    root = Path(tempfile.mkdtemp(prefix="reversi-test-"))
    root.chmod(0o777)
    (root / "shut").mkdir()
    (root / "shut/a").write_text("x")
    for name, mode in {"protected": 0o444, "secret": 0o000, "shut": 0o555}.items():
        if name != "shut":
            (root / name).write_text("x")
        (root / name).chmod(mode)
    yield root
    (root / "shut").chmod(0o755)
    shutil.rmtree(root)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("fs.read_file", {"path": "secret"}, "ToolError: secret: permission denied"),
        ("fs.stat", {"path": "secret"}, "ToolError: secret: permission denied"),
        ("fs.write_file", {"path": "shut/b", "content": ""}, "ToolError: shut/b: permission denied"),
        ("fs.write_file", {"path": "protected", "content": ""}, "ToolError: protected: the file is protected against"),
        ("fs.make_dir", {"path": "shut/b/c"}, "ToolError: shut/b/c: permission denied"),
        ("fs.move_file", {"source": "shut/a", "destination": "b"}, "ToolError: shut/a: permission denied"),
    ],
)
def test_missing_rights_are_told_in_plain_words(locked: Path, tool: str, arguments: dict[str, Any], words: str) -> None:
    connector = fs.build(locked)
    before = list(locked.rglob("*"))

    assert in_child(without_privileges, lambda: connector.call(tool, arguments)).startswith(words)
    assert list(locked.rglob("*")) == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rename_by_link_that_cannot_finish_takes_its_link_back(locked: Path) -> None:
    (locked / "shut/a").chmod(0o666)

    def rename() -> None:
        shut, top = (os.open(folder, os.O_RDONLY) for folder in (locked / "shut", locked))
        rename_by_link(Name(shut, "a"), Name(top, "moved"))

    assert in_child(without_privileges, rename).startswith("PermissionError")
    assert ((locked / "moved").exists(), (locked / "shut/a").exists()) == (False, True)


def test_bug_in_a_changing_tool_leaves_the_outcome_open(connector: Connector, root: Path) -> None:
    def no_clock() -> Any:
        raise ZeroDivisionError("no clock")

    (root / "a").write_text("x")

    with pytest.raises(EffectUncertainError, match=r"^fs.delete_file broke down: ZeroDivisionError: no clock"):
        fs.build(root, now=no_clock).call("fs.delete_file", {"path": "a"})


def test_colliding_backup_ids_never_overwrite_a_backup(root: Path) -> None:
    connector = fs.build(root, new_id=lambda: "0" * 32)
    for name in "ab":
        (root / name).write_text(name)
    connector.call("fs.delete_file", {"path": "a"})

    with pytest.raises(ToolError, match=r"^b: it exists already"):
        connector.call("fs.delete_file", {"path": "b"})

    assert (root / BACKUPS / ("0" * 32)).read_text() == "a"
    assert (root / "b").read_text() == "b"
