"""Somebody else changes the tree while a tool works on it: at an exact moment, or as fast as they can."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connectors.catalog import fs
from connectors.core import files
from connectors.core.connector import Connector
from connectors.core.files import moving, renaming
from connectors.core.files.flushing import flush_directory
from connectors.core.outcomes import EffectUncertainError, ToolError
from tests.connectors.trees import BACKUPS, tree_of, undo_arguments

ROUNDS = 300


class Meddler:
    """Acts once, just before the interpreter opens, renames, makes or removes what it waits for.

    An audit hook cannot be taken out again, so there is one for all tests and it sleeps between them.
    """

    def __init__(self) -> None:
        self.event = ""
        self.name = ""
        self.act: Callable[[], object] | None = None
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[object, ...]) -> None:
        if self.act is None or event != self.event or self.name not in (str(part) for part in args[:2]):
            return
        act, self.act = self.act, None
        act()

    @contextmanager
    def before(self, event: str, name: str, act: Callable[[], object]) -> Iterator[None]:
        self.event, self.name, self.act = event, name, act
        try:
            yield
            assert self.act is None, f"{event} of {name} never came"
        finally:
            self.act = None


MEDDLER = Meddler()


def swap_for_link(path: Path, target: Path) -> Callable[[], None]:
    def act() -> None:
        path.rename(path.with_name("aside"))
        path.symlink_to(target)

    return act


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("fs.read_file", {"path": "d/secret.txt"}),
        ("fs.stat", {"path": "d/secret.txt"}),
        ("fs.write_file", {"path": "d/secret.txt", "content": "x"}),
        ("fs.delete_file", {"path": "d/secret.txt"}),
        ("fs.make_dir", {"path": "d/new"}),
        ("fs.move_file", {"source": "d/secret.txt", "destination": "b"}),
    ],
)
def test_parent_swapped_for_a_link_before_it_is_opened(
    connector: Connector, root: Path, outside: Path, tool: str, arguments: dict[str, str]
) -> None:
    (root / "d").mkdir()
    (root / "d/secret.txt").write_text("inside")
    before = tree_of(outside)

    with (
        MEDDLER.before("open", "d", swap_for_link(root / "d", outside)),
        pytest.raises(ToolError, match=r"^d/(new|secret\.txt): "),
    ):
        connector.call(tool, arguments)

    assert tree_of(outside) == before


def test_parent_swapped_for_a_link_after_it_was_opened(root: Path, outside: Path) -> None:
    (root / "d").mkdir()
    confined = files.ConfinedRoot.at(root, None)

    with confined.locate("d/new/deeper", is_last_followed=True) as place:
        swap_for_link(root / "d", outside)()
        made = files.make_directories(place)

    assert made == ("d/new", "d/new/deeper")
    assert (root / "aside/new/deeper").is_dir()
    assert tree_of(outside).keys() == {"secret.txt"}


def test_new_directory_swapped_for_a_link(connector: Connector, root: Path, outside: Path) -> None:
    def swap() -> None:
        (root / "a").rmdir()
        (root / "a").symlink_to(outside)

    with MEDDLER.before("open", "a", swap), pytest.raises((ToolError, EffectUncertainError)):
        connector.call("fs.make_dir", {"path": "a/b"})

    assert tree_of(outside).keys() == {"secret.txt"}


def test_file_swapped_for_a_pipe_is_not_waited_for(connector: Connector, root: Path) -> None:
    def swap() -> None:
        (root / "a").unlink()
        os.mkfifo(root / "a")

    (root / "a").touch()
    with MEDDLER.before("open", "a", swap), pytest.raises(ToolError, match=r"^a: not a regular file"):
        connector.call("fs.read_file", {"path": "a"})


def test_file_swapped_for_a_link_out_is_not_read(connector: Connector, root: Path, outside: Path) -> None:
    (root / "a").write_text("inside")

    with (
        MEDDLER.before("open", "a", swap_for_link(root / "a", outside / "secret.txt")),
        pytest.raises(ToolError, match=r"^a: "),
    ):
        connector.call("fs.read_file", {"path": "a"})


def test_file_changed_while_it_is_being_replaced_is_left_alone(connector: Connector, root: Path) -> None:
    (root / "a").write_text("old")

    with (
        _changing_during_write(root),
        pytest.raises(ToolError, match="changed by somebody else meanwhile; nothing was changed"),
    ):
        connector.call("fs.write_file", {"path": "a", "content": "new"})

    assert (root / "a").read_text() == "theirs, longer"
    assert list((root / BACKUPS).iterdir()) == []
    assert {path.name for path in root.iterdir()} == {"a", BACKUPS}


@contextmanager
def _changing_during_write(root: Path) -> Iterator[None]:
    """Change the file when the connector has made its backup and sets the owner of the temporary file."""
    ids: list[None] = []

    def second_time() -> None:
        (root / "a").write_text("theirs, longer")

    def first_time() -> None:
        ids.append(None)
        MEDDLER.act = second_time

    uid = str((root / "a").stat().st_uid)
    with MEDDLER.before("os.chown", uid, first_time):
        yield


def test_name_taken_while_a_new_file_is_written_is_left_alone(connector: Connector, root: Path) -> None:
    before = files.ConfinedRoot.at(root, None)
    with before.locate("a", is_last_followed=True) as place:
        seen = files.look_in(place)
        (root / "a").write_text("theirs")
        with pytest.raises(ToolError, match="meanwhile; nothing was changed"):
            files.replace_content(_backups(root), place, seen, [b"ours"])

    assert (root / "a").read_text() == "theirs"
    assert {path.name for path in root.iterdir()} == {"a"}


def _backups(root: Path) -> files.Backups:
    ids = iter(f"{number:032x}" for number in range(100))
    return files.Backups(files.ConfinedRoot.at(root, None), lambda: next(ids), lambda: datetime(2026, 1, 1, tzinfo=UTC))


def meddling_clock(act: Callable[[], object]) -> Callable[[], datetime]:
    """Tell the time, and act when asked for it first: that is while a deletion writes its note."""
    waiting = [act]

    def now() -> datetime:
        if waiting:
            waiting.pop()()
        return datetime(2026, 1, 1, tzinfo=UTC)

    return now


def test_deletion_tells_what_it_really_took(root: Path) -> None:
    (root / "a").write_text("old")
    connector = fs.build(root, now=meddling_clock(lambda: (root / "a").write_text("theirs, longer")))

    result = connector.call("fs.delete_file", {"path": "a"})
    note = json.loads((root / BACKUPS / f"{result['backup']}.json").read_text())
    connector.call(*undo_arguments(connector, "fs.delete_file", result))

    sha256 = hashlib.sha256(b"theirs, longer").hexdigest()
    assert (result["previous"]["sha256"], note["sha256"]) == (sha256, sha256)
    assert (root / "a").read_text() == "theirs, longer"


def test_deletion_puts_back_what_is_no_file(root: Path) -> None:
    (root / "a").touch()
    connector = fs.build(root, now=meddling_clock(swap_for_link(root / "a", Path("nowhere"))))

    with pytest.raises(ToolError, match=r"^a: it was swapped for something else meanwhile; that was put back"):
        connector.call("fs.delete_file", {"path": "a"})

    assert (root / "a").is_symlink()
    assert list((root / BACKUPS).iterdir()) == []


def test_backup_of_a_file_that_changed_is_refused(root: Path) -> None:
    (root / "a").write_text("old")
    with files.ConfinedRoot.at(root, None).locate("a", is_last_followed=False) as place:
        seen = files.look_in(place)
        (root / "a").write_text("newer")
        with pytest.raises(ToolError, match=r"^a: it was changed by somebody else meanwhile; nothing was changed"):
            _backups(root).keep_copy(place, seen, reason="write")

    assert list((root / BACKUPS).iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_move_of_what_changed_meanwhile(root: Path, kind: str) -> None:
    (root / "a").write_text("old") if kind == "file" else (root / "a").mkdir(mode=0o755)
    confined = files.ConfinedRoot.at(root, None)
    with (
        confined.locate("a", is_last_followed=False) as source,
        confined.locate("b", is_last_followed=False) as destination,
    ):
        seen = files.look_in(source)
        if kind == "file":
            (root / "a").write_text("newer")
            with pytest.raises(ToolError, match=r"^a: it was changed by somebody else meanwhile"):
                moving.move(source, destination, seen)
        else:
            (root / "a/new").touch()
            assert moving.move(source, destination, seen) == seen.state


def test_move_to_a_name_that_was_taken_meanwhile(root: Path) -> None:
    (root / "a").mkdir()
    confined = files.ConfinedRoot.at(root, None)
    with (
        confined.locate("a", is_last_followed=False) as source,
        confined.locate("b", is_last_followed=False) as destination,
    ):
        (root / "b").mkdir()
        with pytest.raises(ToolError, match=r"^b: the name is taken; nothing was moved"):
            moving.move(source, destination, files.look_in(source))


def test_file_that_changes_while_it_is_hashed_is_looked_at_again(connector: Connector, root: Path) -> None:
    (root / "a").write_text("old")

    with MEDDLER.before("open", "a", lambda: (root / "a").write_text("newer")):
        result = connector.call("fs.move_file", {"source": "a", "destination": "b"})

    assert result["moved"]["sha256"] == hashlib.sha256(b"newer").hexdigest()


def test_walks_never_leave_a_root_whose_parts_are_swapped_all_the_time(
    connector: Connector, root: Path, outside: Path
) -> None:
    """A thread swaps a directory for a link to the outside and back while every tool works below it."""
    (root / "d").mkdir()
    (root / "link").symlink_to(outside)
    before = tree_of(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(root / "d", root / "aside")  # noqa: PTH104 - as fast as the system can
            os.rename(root / "link", root / "d")  # noqa: PTH104
            os.rename(root / "d", root / "link")  # noqa: PTH104
            os.rename(root / "aside", root / "d")  # noqa: PTH104

    swapper = threading.Thread(target=swap)
    swapper.start()
    read = set()
    try:
        # On a busy machine the swapper may win every round: go on, bounded, until something was read at all.
        for number in itertools.count():
            read |= _work_below(connector, number)
            if number >= ROUNDS and (read or number >= 50 * ROUNDS):
                break
    finally:
        done.set()
        swapper.join()

    assert tree_of(outside) == before
    assert "outside" not in read
    assert read


def _work_below(connector: Connector, number: int) -> set[str]:
    read = set()
    calls: list[tuple[str, dict[str, str]]] = [
        ("fs.write_file", {"path": f"d/w{number}", "content": "inside"}),
        ("fs.write_file", {"path": "d/secret.txt", "content": "inside"}),
        ("fs.read_file", {"path": "d/secret.txt"}),
        ("fs.move_file", {"source": "d/secret.txt", "destination": f"d/x{number}"}),
        ("fs.delete_file", {"path": "d/secret.txt"}),
    ]
    for tool, arguments in calls:
        with suppress(ToolError, EffectUncertainError):
            read.add(str(connector.call(tool, arguments).get("content")))
    return read


def refused_by_the_file_system(*_: object) -> None:
    raise OSError(errno.EINVAL, "not offered")


RENAMES: dict[str, Callable[[renaming.Name, renaming.Name], None]] = {
    "in one step": renaming.rename_no_replace,
    "by link": renaming.rename_by_link,
    "where the library has none": partial(renaming.rename_no_replace, offered=lambda: None),
    "where the file system has none": partial(renaming.rename_no_replace, offered=lambda: refused_by_the_file_system),
}


@pytest.fixture
def folder(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("way", RENAMES)
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_renaming_moves(root: Path, folder: int, way: str, kind: str) -> None:
    (root / "a").mkdir() if kind == "directory" else (root / "a").write_text("x")

    RENAMES[way](renaming.Name(folder, "a"), renaming.Name(folder, "b"))

    assert [path.name for path in root.iterdir()] == ["b"]


@pytest.mark.parametrize("way", RENAMES)
@pytest.mark.parametrize("taken", ["file", "directory", "link"])
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_renaming_never_replaces(root: Path, folder: int, way: str, kind: str, taken: str) -> None:
    for name, what in (("a", kind), ("b", taken)):
        match what:
            case "file":
                (root / name).write_text(name)
            case "directory":
                (root / name).mkdir()
            case _:
                (root / name).symlink_to("nothing")
    before = tree_of(root)

    with pytest.raises(FileExistsError):
        RENAMES[way](renaming.Name(folder, "a"), renaming.Name(folder, "b"))

    assert tree_of(root) == before


def test_one_of_two_racing_moves_gets_the_name(connector: Connector, root: Path) -> None:
    for round_number in range(30):
        (root / "a").write_text("a")
        (root / "b").write_text("b")
        outcomes: list[str] = []

        def move(source: str, outcomes: list[str] = outcomes) -> None:
            try:
                connector.call("fs.move_file", {"source": source, "destination": "c"})
                outcomes.append("moved")
            except ToolError:
                outcomes.append("refused")

        threads = [threading.Thread(target=move, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(outcomes) == ["moved", "refused"], round_number
        assert len(list(root.iterdir())) == 2
        for path in root.iterdir():
            path.unlink()


def test_only_one_of_racing_writers_made_the_file(connector: Connector, root: Path) -> None:
    """Every other one either replaced what it saw, with a backup of it, or was refused."""
    for round_number in range(40):
        path = f"new{round_number}"
        start = threading.Barrier(3)
        results: list[dict[str, Any]] = []

        def write(
            content: str, path: str = path, start: threading.Barrier = start, results: list[dict[str, Any]] = results
        ) -> None:
            start.wait()
            with suppress(ToolError):
                results.append(connector.call("fs.write_file", {"path": path, "content": content}))

        threads = [threading.Thread(target=write, args=(content,)) for content in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [result["previous"]["exists"] for result in results].count(False) == 1, results


@pytest.mark.parametrize(("problem", "is_raised"), [("not offered", False), ("closed", True)])
def test_flushing_forgives_only_what_is_not_offered(problem: str, is_raised: bool) -> None:
    read_end, write_end = os.pipe()
    os.close(write_end)
    if problem == "closed":
        os.close(read_end)

    try:
        with pytest.raises(OSError, match="Bad file descriptor") if is_raised else nullcontext():
            flush_directory(read_end)
    finally:
        if problem != "closed":
            os.close(read_end)
