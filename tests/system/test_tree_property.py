"""Random overlapping changes of real files, undone through faults and selections: `complete` never lies.

Complete without a selection means the identical tree. Complete with one means that every path which only undone
steps touched is as it was.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ledger import queries
from ledger.core.statuses import StepState
from rollback.core.backoff import Retrying
from rollback.core.options import RollbackOptions
from rollback.core.report import Report
from rollback.core.selection import Selection
from rollback.operations.execution import run_foreground
from tests.connectors.trees import Tree, tree_of
from tests.databases import Database
from tests.system.agents import FileAgent

FILES = ("a", "b", "d/x", "d/y", "d/e/z", "new/f")
FOLDERS = ("d", "d/e", "new", "new/sub", "other")
FAULTS = ("fails", "lies", "lost before", "lost after")

PLANTED = (("a", b"\x00\xff", 0o600), ("d/x", b"x", 0o755), ("d/e/z", b"", 0o444), ("keep", b"k", 0o640))

paths = st.sampled_from(FILES + FOLDERS)
operations = st.one_of(
    st.tuples(st.just("fs.write_file"), st.fixed_dictionaries({"path": paths, "content": st.sampled_from("123")})),
    st.tuples(st.just("fs.delete_file"), st.fixed_dictionaries({"path": paths})),
    st.tuples(st.just("fs.make_dir"), st.fixed_dictionaries({"path": st.sampled_from(FOLDERS)})),
    st.tuples(st.just("fs.move_file"), st.fixed_dictionaries({"source": paths, "destination": paths})),
)
faults = st.dictionaries(st.integers(0, 11), st.lists(st.sampled_from(FAULTS), max_size=3), max_size=6)
selections = st.none() | st.lists(st.integers(0, 11), min_size=1, max_size=3, unique=True)
Operations = list[tuple[str, dict[str, Any]]]
Faults = dict[int, list[str]]


def plant(root: Path) -> None:
    """Make the tree that the agent finds: modes, nesting, bytes."""
    (root / "d/e").mkdir(parents=True)
    for name, content, mode in (
        ("a", b"\x00\xff", 0o600),
        ("d/x", b"x", 0o755),
        ("d/e/z", b"", 0o444),
        ("keep", b"k", 0o640),
    ):
        (root / name).write_bytes(content)
        (root / name).chmod(mode)


@pytest.mark.timeout(300)
def test_complete_means_that_the_tree_is_what_it_was(db: Database) -> None:
    check_examples(60 if db.engine == "sqlite" else 20)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_complete_means_that_the_tree_is_what_it_was_at_length(db: Database) -> None:
    check_examples(600 if db.engine == "sqlite" else 200)


def check_examples(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(calls=st.lists(operations, max_size=12), planned=faults, rounds=st.lists(selections, max_size=3))
    @example(
        calls=[
            ("fs.write_file", {"path": "d/x", "content": "1"}),
            ("fs.move_file", {"source": "d", "destination": "other"}),
            ("fs.write_file", {"path": "other/x", "content": "2"}),
        ],
        planned={1: ["lies", "lost after"], 0: ["lost before"]},
        rounds=[[0], None],
    )
    def check(calls: Operations, planned: Faults, rounds: list[list[int] | None]) -> None:
        with tempfile.TemporaryDirectory(dir=folder_in_memory()) as folder:
            roll_back_through_faults(Path(folder) / "root", calls, planned, [*rounds, None])

    check()


def folder_in_memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def roll_back_through_faults(root: Path, calls: Operations, planned: Faults, rounds: list[list[int] | None]) -> None:
    root.mkdir()
    plant(root)
    before = tree_of(root)
    agent = FileAgent(root)
    for tool, args in calls:
        agent.call(tool, **args)
    count = len(queries.list_steps(agent.run.id))
    tools = agent.tools(planned)
    for chosen in rounds:
        selection = None if chosen is None else Selection(steps=tuple(n for n in chosen if n < count))
        if selection is not None and not selection.steps:
            continue
        options = RollbackOptions(retrying=Retrying(attempts=2, base_ms=1), selection=selection)
        report = run_foreground(run_id=agent.run.id, tools=tools, actor="op", options=options, sleep=lambda _: None)
        require_truth(agent, report, before)
    # Once no fault is left to play, the last word must be complete.
    for played in planned.values():
        played.clear()
    report = run_foreground(run_id=agent.run.id, tools=tools, actor="op", sleep=lambda _: None)
    assert report.is_complete, report.to_json()
    assert tree_of(root) == before
    sent = len(tools.executor.sent)  # type: ignore[attr-defined]  # the faulty executor of these tests
    run_foreground(run_id=agent.run.id, tools=tools, actor="op", sleep=lambda _: None)
    assert len(tools.executor.sent) == sent  # type: ignore[attr-defined]  # a rollback of what is undone sends nothing


def require_truth(agent: FileAgent, report: Report, before: Tree) -> None:
    after = tree_of(agent.root)
    if report.is_complete and report.selection is None:
        assert after == before
    undone = {s.number for s in queries.list_steps(agent.run.id) if s.state is StepState.COMPENSATED}
    touched = {number: set(touched_by(result)) for number, result in agent.results.items()}
    standing = {name for number, names in touched.items() if number not in undone for name in names}
    for path in before.keys() | after.keys():
        if not any(shares(path, name) for name in standing):
            assert after.get(path) == before.get(path), f"{path} differs although every step that touched it is undone"


def touched_by(result: Mapping[str, Any]) -> Iterator[str]:
    for member in ("path", "top", "source", "destination"):
        if member in result:
            yield result[member]


def shares(path: str, name: str) -> bool:
    return path == name or path.startswith(name + "/") or name.startswith(path + "/")
