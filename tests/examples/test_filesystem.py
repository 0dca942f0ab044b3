"""What the official file server did is undone, byte by byte, or named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.catalog import connector_spec
from reversi_sdk.model import Effect
from rollback.core.selection import Selection
from tests.connectors.trees import tree_of
from tests.databases import Database
from tests.examples.runs import manifests_of, plan, play, undo
from tests.examples.servers import Files, files_world
from tests.examples.sessions import Calls, file_session


def write(path: Path | str, content: str = "new") -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": str(path), "content": content}


def move(source: Path | str, destination: Path | str) -> tuple[str, dict[str, Any]]:
    return "move_file", {"source": str(source), "destination": str(destination)}


def make(path: Path | str) -> tuple[str, dict[str, Any]]:
    return "create_directory", {"path": str(path)}


def edit(path: Path | str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": str(path), "edits": [{"oldText": old, "newText": new}]}


def test_a_whole_session_is_undone_exactly(db: Database, files: Files) -> None:
    before = tree_of(files.root)

    errors = play(world=files, calls=file_session(files.root))
    after = tree_of(files.root)
    promised = plan()
    undone = undo(world=files)

    assert sum(error is not None for error in errors) == 5, errors
    assert after != before
    assert (promised, undone.reasons, undone.report.is_complete) == ({}, {}, True)
    assert tree_of(files.root) == before


def test_without_the_connector_what_stays_is_named(db: Database, files: Files) -> None:
    before, session = tree_of(files.root), file_session(files.root)
    files.connector = None

    play(world=files, calls=session)
    undone = undo(world=files)
    after = tree_of(files.root)

    different = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    named = {path for number in undone.named for path in paths_of(session[number], files.root)}
    assert different
    assert {path for path in different if not any(is_along(path, other) for other in named)} == set()
    assert not undone.report.is_complete
    assert undone.verified, "replacing and editing need no connector"


def paths_of(call: tuple[str, dict[str, Any]], root: Path) -> set[str]:
    names = ("path", "source", "destination")
    return {str(Path(call[1][name]).relative_to(root)) for name in names if name in call[1]}


def is_along(path: str, other: str) -> bool:
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


def test_every_tool_of_the_server_has_a_manifest(files: Files) -> None:
    offered = files.server.list_tools()

    entries = manifests_of("filesystem").entries
    described = {tool: entry.manifest.effect for tool, entry in entries.items() if not tool.startswith("fs.")}

    reading = {tool for tool, listed in offered.items() if listed["annotations"]["readOnlyHint"]}
    assert described.keys() == offered.keys()
    assert {tool for tool, effect in described.items() if effect is Effect.READ_ONLY} == reading


def test_manifests_of_the_connector_are_its_own() -> None:
    own = {manifest["tool"]: manifest for manifest in connector_spec("fs").manifests()}
    copied = {tool: entry for tool, entry in manifests_of("filesystem").entries.items() if tool.startswith("fs.")}

    assert copied.keys() == {"fs.resolve", "fs.remove_file", "fs.remove_dir"}
    for tool, entry in copied.items():
        assert {**own[tool], "version": 1, "status": "approved", "approval": "never"} == entry.normalized


UNREADABLE = {
    "no utf-8": b"caf\xe9",
    "an image": bytes(range(256)),
    "utf-16": "grün".encode("utf-16"),
    "the replacement character itself": "a\ufffdb".encode(),
}


@pytest.mark.parametrize("case", UNREADABLE)
@pytest.mark.parametrize("tool", ["write", "edit"])
def test_what_is_no_text_is_unrecoverable_from_the_start(
    sqlite_db: Database, files: Files, case: str, tool: str
) -> None:
    path = files.root / "data"
    path.write_bytes(UNREADABLE[case] + b"\nend")
    call = write(path) if tool == "write" else edit(path, "end", "END")

    play(world=files, calls=[write(files.root / "empty"), call])
    changed = path.read_bytes()
    promised = plan()
    undone = undo(world=files)

    reason = "unrecoverable: cannot capture the state before: `content` cannot be restored from: it matches '*\ufffd*'"
    assert promised == {1: reason}
    assert undone.reasons == {1: reason}
    assert path.read_bytes() == changed
    assert (files.root / "empty").read_bytes() == b""


def test_a_read_that_fails_is_never_taken_for_absence(sqlite_db: Database, files: Files) -> None:
    path = files.root / "ENOENT: no such file or directory, open x"
    path.write_text("old")
    files.failing_reads = f"EACCES: permission denied, open '{path}'"
    play(world=files, calls=[write(path)])
    files.failing_reads = None

    undone = undo(world=files)

    assert undone.reasons[0].startswith("unrecoverable: cannot capture the state before: EACCES")
    assert path.read_text() == "new"


ROUND_TRIPS = {
    "crlf": b"a\r\nb\r\n",
    "bom": b"\xef\xbb\xbfa",
    "nul": b"\0a\0",
    "no line end": b"a",
    "nothing": b"",
    "old mac": b"a\rb\r",
    "separators": "a\u2028b\u2029\x85\x0b".encode(),
    "astral": "\U0001f600 e\u0301 \u00e9".encode(),
    "utf-16 without a mark": "ascii a".encode("utf-16-le"),
    "long": b"line of text\n" * 100_000,
}


@pytest.mark.parametrize("case", ROUND_TRIPS)
def test_every_text_comes_back_byte_by_byte(sqlite_db: Database, files: Files, case: str) -> None:
    path = files.root / "data"
    path.write_bytes(ROUND_TRIPS[case])
    path.chmod(0o751)
    before = tree_of(files.root)
    first = ROUND_TRIPS[case].decode()[:1]

    play(
        world=files,
        calls=[edit(path, first, "X"), write(path, "new\r\n"), edit(path, "new", "Y")],
    )
    undone = undo(world=files)

    assert (undone.reasons, undone.verified) == ({}, {0, 1, 2})
    assert tree_of(files.root) == before


def replace(path: Path, content: bytes = b"by somebody else") -> None:
    path.write_bytes(content)


NEWER_WORK: dict[str, tuple[Callable[[Path], Calls], Callable[[Path], None]]] = {
    "a replaced file": (lambda root: [write(root / "notes/today.md")], lambda root: replace(root / "notes/today.md")),
    "an edited file": (
        lambda root: [edit(root / "notes/today.md", "milk", "tea")],
        lambda root: replace(root / "notes/today.md"),
    ),
    "a new file": (lambda root: [write(root / "new")], lambda root: replace(root / "new")),
    "a new file, gone": (lambda root: [write(root / "new")], lambda root: (root / "new").unlink()),
    "a replaced file, now no text": (
        lambda root: [write(root / "empty")],
        lambda root: replace(root / "empty", b"\xff"),
    ),
    "a new directory, filled": (lambda root: [make(root / "a/b")], lambda root: replace(root / "a/b/f")),
    "a new directory, filled above": (lambda root: [make(root / "a/b")], lambda root: replace(root / "a/f")),
    "a moved file, its name taken": (
        lambda root: [move(root / "empty", root / "full")],
        lambda root: replace(root / "empty"),
    ),
}


@pytest.mark.parametrize("case", NEWER_WORK)
def test_newer_work_stops_an_undo(sqlite_db: Database, files: Files, case: str) -> None:
    calls, intrude = NEWER_WORK[case]
    play(world=files, calls=calls(files.root))
    intrude(files.root)
    before = tree_of(files.root)

    undone = undo(world=files)

    assert undone.reasons[0].startswith("failed: changed since")
    assert tree_of(files.root) == before


def test_an_operator_may_overwrite_newer_work(sqlite_db: Database, files: Files) -> None:
    before = tree_of(files.root)
    play(world=files, calls=[write(files.root / "empty"), write(files.root / "new")])
    for name in ("empty", "new"):
        replace(files.root / name)

    undone = undo(world=files, is_overwrite_allowed=True)

    assert undone.reasons == {}
    assert tree_of(files.root) == before
    kept = [path.read_text() for path in (files.root.parent / "backups").iterdir() if path.suffix != ".json"]
    assert kept == ["by somebody else"]


def test_newer_work_on_a_text_that_cannot_be_restored_is_seen(sqlite_db: Database, files: Files) -> None:
    play(world=files, calls=[write(files.root / "empty", "a\ufffd")])
    replace(files.root / "empty")

    undone = undo(world=files)

    assert undone.reasons[0].startswith("failed: changed since")


def test_another_thing_at_the_destination_is_never_taken_for_the_moved_one(sqlite_db: Database, files: Files) -> None:
    play(world=files, calls=[move(files.root / "empty", files.root / "full")])
    replace(files.root / "full")

    undone = undo(world=files)

    assert undone.reasons[0].startswith("failed: verification failed")


def test_a_moved_link_is_named(sqlite_db: Database, files: Files) -> None:
    play(world=files, calls=[move(files.root / "to-today", files.root / "moved")])
    moved = tree_of(files.root)

    undone = undo(world=files)

    assert undone.reasons[0].startswith("failed: ")
    assert tree_of(files.root) == moved


def test_paths_that_only_the_server_understands_are_named(sqlite_db: Database, files: Files) -> None:
    root = files.root
    calls = [
        write("notes/today.md"),
        write("~/notes/private.txt"),
        write(f"{root}/notes/../notes/windows.txt"),
        write("new"),
        write("~/new too"),
        write(f"{root}/notes/../third"),
        make("d"),
        make("~/e"),
        move("empty", "full"),
    ]
    before = tree_of(root)

    errors = play(world=files, calls=calls)
    promised = plan()
    undone = undo(world=files)

    assert errors == [None] * len(calls)
    assert promised.keys() == {6, 7, 8}
    assert undone.named.keys() == {3, 4, 5, 6, 7, 8}
    assert {str(path) for path in tree_of(root).keys() ^ before.keys()} == {
        "new", "new too", "third", "d", "e", "empty", "full"
    }  # fmt: skip
    assert {path for path, found in tree_of(root).items() if before.get(path, found) != found} == set()


def test_every_spelling_of_a_path_below_the_root_is_undone(sqlite_db: Database, files: Files) -> None:
    root = files.root
    before = tree_of(root)
    calls = [
        write(f"{root}//new"),
        write(f"{root}/./notes/today.md"),
        make(f"{root}/x//y/"),
        write(f"{root}/x/./y/f"),
        move(f"{root}/x/", f"{root}//z/"),
        write(f"{root}/z/y//f", "changed"),
        write(root / "notes/today.md", "again"),
        make(f"{root}/"),
        make(root),
    ]

    errors = play(world=files, calls=calls)
    undone = undo(world=files)

    assert errors == [None] * len(calls)
    assert (undone.reasons, undone.report.is_complete) == ({}, True)
    assert tree_of(root) == before


def test_a_later_change_under_another_spelling_is_not_overwritten(sqlite_db: Database, files: Files) -> None:
    calls = [write(files.root / "empty", "first"), write(f"{files.root}//empty", "second")]
    play(world=files, calls=calls)

    undone = undo(world=files, selection=Selection(steps=(0,)))

    assert undone.reasons[0].startswith("failed: changed since")
    assert (files.root / "empty").read_text() == "second"


def test_a_second_served_folder_is_undone_or_named(sqlite_db: Database, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "old").write_text("old")
    with files_world(tmp_path, other) as files:
        files.start_anew()
        calls = [write(other / "old"), write(other / "new"), make(other / "d"), move(other / "old", other / "moved")]

        errors = play(world=files, calls=calls)
        undone = undo(world=files)

        assert errors == [None] * len(calls)
        assert {number: reason.partition(":")[0] for number, reason in undone.reasons.items()} == {
            0: "deferred",
            1: "failed",
            2: "unrecoverable",
            3: "unrecoverable",
        }


def test_a_folder_served_through_a_link_is_undone(sqlite_db: Database, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(tmp_path / "files")
    (tmp_path / "files").mkdir()
    (tmp_path / "files").rmdir()
    with files_world(tmp_path, alias) as files:
        files.start_anew()
        before = tree_of(files.root)

        errors = play(world=files, calls=file_session(alias))
        undone = undo(world=files)

        assert sum(error is not None for error in errors) == 5, errors
        assert undone.reasons == {}
        assert tree_of(files.root) == before


LOSSES = [(False,), (True,), (False, True), (True, True), (False, False)]


@pytest.mark.parametrize("losses", LOSSES, ids=str)
@pytest.mark.parametrize("tool", ["write", "new", "edit", "make", "move"])
def test_a_lost_answer_of_an_undo_is_settled_by_looking(
    sqlite_db: Database, files: Files, tool: str, losses: tuple[bool, ...]
) -> None:
    root = files.root
    calls = {
        "write": write(root / "empty"),
        "new": write(root / "new"),
        "edit": edit(root / "notes/today.md", "milk", "tea"),
        "make": make(root / "a/b"),
        "move": move(root / "empty", root / "full"),
    }
    before = tree_of(root)
    play(world=files, calls=[calls[tool]])
    files.lost.plan.extend(losses)

    undone = undo(world=files, attempts=3)

    is_undone = tree_of(root) == before
    assert is_undone == (undone.reasons == {})
    assert (undone.verified == {0}) == is_undone
    assert is_undone or losses == (False, False), undone.reasons
