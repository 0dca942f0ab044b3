"""Random sessions, undone with answers lost on the way and somebody else at work: identical, told, or named.

Whatever happens, a thing that is not as it was belongs to a step that the report names or to a residue that it tells,
no step counts as undone and read back while its effect stands, and nobody else's work is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.connectors.trees import tree_of
from tests.databases import Database
from tests.examples.graphs import Graph, Triple, graph_of
from tests.examples.runs import Undone, play, undo
from tests.examples.servers import Files, Memory

EVERYDAY = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
LONG = settings(EVERYDAY, max_examples=400)
FOREIGN = "by somebody else"

runs = count()
Call = tuple[str, dict[str, Any]]


NOTES = ["notes", "notes/today.md", "notes/windows.txt", "to-today", "to-today/x", "empty", "bom.txt", "photo.bin"]
OTHERS = [".", "new", "a", "a/b", "a/b/c", "a/f", "archive", "archive/2024", "archive/2024/a.txt", "archive/x"]
PATHS = st.sampled_from([*NOTES, *OTHERS])
TEXTS = st.sampled_from(["", "one\ntwo\n", "one\r\ntwo\r\n", "grün\ufeff\0", "a\ufffdb", "a"])
EDITS = st.lists(
    st.builds(lambda old, new: {"oldText": old, "newText": new}, st.sampled_from("aeo\n"), TEXTS), max_size=2
)
FILE_CALLS = st.one_of(
    st.builds(lambda path, text: ("write_file", {"path": path, "content": text}), PATHS, TEXTS),
    st.builds(
        lambda path, edits, is_dry: ("edit_file", {"path": path, "edits": edits, "dryRun": is_dry}),
        PATHS,
        EDITS,
        st.booleans(),
    ),
    st.builds(lambda path: ("create_directory", {"path": path}), PATHS),
    st.builds(lambda start, end: ("move_file", {"source": start, "destination": end}), PATHS, PATHS),
)
SPELLINGS = st.sampled_from(["{root}/{path}"] * 6 + ["{root}//{path}", "{path}", "~/{path}", "{root}/./{path}/"])
LOSSES = st.lists(st.sampled_from([None, None, None, True, False]), max_size=6)
NAMES = st.sampled_from(["Ada", "Bo", "Chess club", "Cy", "Dee"])
CONTENTS = st.lists(st.sampled_from(["likes tea", "plays chess", "meets on Mondays", "x", "y"]), max_size=3)
RELATIONS = st.lists(
    st.builds(
        lambda start, kind, end: {"from": start, "relationType": kind, "to": end},
        NAMES,
        st.sampled_from(["knows", "member of"]),
        NAMES,
    ),
    max_size=3,
)
ENTITIES = st.builds(lambda name, texts: {"name": name, "entityType": "thing", "observations": texts}, NAMES, CONTENTS)
MEMORY_CALLS = st.one_of(
    st.builds(
        lambda entities: ("create_entities", {"entities": entities}),
        st.lists(ENTITIES, max_size=3, unique_by=lambda each: str(each["name"])),
    ),
    st.builds(lambda names: ("delete_entities", {"entityNames": names}), st.lists(NAMES, max_size=2)),
    st.builds(lambda relations: ("create_relations", {"relations": relations}), RELATIONS),
    st.builds(lambda relations: ("delete_relations", {"relations": relations}), RELATIONS),
    st.builds(
        lambda names, texts: (
            "add_observations",
            {"observations": [{"entityName": name, "contents": texts} for name in names]},
        ),
        st.lists(NAMES, max_size=3),
        CONTENTS,
    ),
    st.builds(
        lambda names, texts: (
            "delete_observations",
            {"deletions": [{"entityName": name, "observations": texts} for name in names]},
        ),
        st.lists(NAMES, max_size=3),
        CONTENTS,
    ),
)


@st.composite
def file_calls(draw: st.DrawFn) -> Call:
    """A call whose paths are spelled as it comes; `{root}` is still to be filled in."""
    tool, arguments = draw(FILE_CALLS)
    paths = {name for name in ("path", "source", "destination") if name in arguments}
    spelled = {name: draw(SPELLINGS).replace("{path}", arguments[name]) for name in sorted(paths)}
    return tool, arguments | spelled


class FileTrial:
    """One random session on files."""

    def __init__(self, world: Files) -> None:
        self.world, self.run_id = world, f"run_{next(runs)}"
        world.start_anew()
        self.before = tree_of(world.root)

    def check(self, calls: Sequence[Call], foreign: str | None, losses: Sequence[bool | None], attempts: int) -> None:
        root = self.world.root
        filled = [(tool, self._filled(arguments)) for tool, arguments in calls]
        play(world=self.world, calls=filled, run_id=self.run_id)
        is_intruded = foreign is not None and (root / foreign).is_file()
        if is_intruded:
            (root / str(foreign)).write_text(FOREIGN)
        self.world.lost.plan.clear()
        self.world.lost.plan.extend(losses)

        undone = undo(world=self.world, run_id=self.run_id, attempts=attempts)

        self._judge(undone, filled, is_intruded)
        self.world.lost.plan.clear()
        self._judge(undo(world=self.world, run_id=self.run_id), filled, is_intruded)

    def _filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        root = str(self.world.root)
        return {
            n: v.replace("{root}", root) if isinstance(v, str) and n != "content" else v for n, v in arguments.items()
        }

    def _judge(self, undone: Undone, calls: Sequence[Call], is_intruded: bool) -> None:
        after = tree_of(self.world.root)
        event("complete" if undone.report.is_complete else "incomplete")
        different = {path for path in self.before.keys() | after.keys() if self.before.get(path) != after.get(path)}
        named = {path for number in undone.named for path in self._paths(calls[number])}
        unexplained = {path for path in different if not any(_is_along(path, other) for other in named)}
        assert is_intruded or not unexplained, (unexplained, undone.reasons)
        if is_intruded:
            texts = [path.read_bytes() for path in self.world.root.rglob("*") if path.is_file()]
            assert FOREIGN.encode() in texts, undone.reasons

    def _paths(self, call: Call) -> set[str]:
        """The paths of a call below the root, with what they lead to through links."""
        found = set()
        for name in ("path", "source", "destination"):
            text = str(call[1].get(name, ".")).replace("~", str(self.world.root), 1)
            path = self.world.root / text
            found.add(str(path.relative_to(self.world.root)))
            if "to-today" in path.parts:
                found.add("notes/today.md")
        return found if call[0] == "move_file" else found - {"."}


def _is_along(path: str, other: str) -> bool:
    return other == "." or f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


class MemoryTrial:
    """One random session on a graph."""

    def __init__(self, world: Memory) -> None:
        self.world, self.run_id = world, f"run_{next(runs)}"
        world.start_anew()
        self.before = graph_of(world.path)

    def check(
        self, calls: Sequence[Call], foreign: Triple | None, losses: Sequence[bool | None], attempts: int
    ) -> None:
        errors = play(world=self.world, calls=calls, run_id=self.run_id)
        if foreign is not None:
            self._intrude(foreign)
        intruded = graph_of(self.world.path)
        self.world.lost.plan.clear()
        self.world.lost.plan.extend(losses)
        done = [call if error is None else None for call, error in zip(calls, errors, strict=True)]

        undone = undo(world=self.world, run_id=self.run_id, attempts=attempts)

        self._judge(undone, done, foreign, intruded)
        self.world.lost.plan.clear()
        self._judge(undo(world=self.world, run_id=self.run_id), done, foreign, intruded)

    def _intrude(self, foreign: Triple) -> None:
        start, kind, end = foreign
        related = [{"from": start, "to": end, "relationType": kind}]
        self.world.server.call("create_relations", {"relations": related})
        if start in graph_of(self.world.path).names:
            observed = [{"entityName": start, "contents": [FOREIGN]}]
            self.world.server.call("add_observations", {"observations": observed})

    def _judge(self, undone: Undone, calls: Sequence[Call | None], foreign: Triple | None, intruded: Graph) -> None:
        after = graph_of(self.world.path)
        event("complete" if undone.report.is_complete else "incomplete")
        named = {name for number in undone.named for name in _names(calls[number])}
        self._judge_entities(after, named, foreign, undone)
        self._judge_relations(after, named, calls, foreign, undone)
        assert foreign is None or after.relations[foreign] >= intruded.relations[foreign], undone.reasons

    def _judge_entities(self, after: Graph, named: set[str], foreign: Triple | None, undone: Undone) -> None:
        ours = (after.entities - self.before.entities) + (self.before.entities - after.entities)
        strange = {name for name, _, texts in ours if name not in named and FOREIGN not in texts}
        assert strange <= ({foreign[0]} if foreign else set()), (ours, undone.reasons)
        if foreign is None:
            assert not strange, (ours, undone.reasons)

    def _judge_relations(
        self, after: Graph, named: set[str], calls: Sequence[Call | None], foreign: Triple | None, undone: Undone
    ) -> None:
        taken = {
            name
            for call in calls
            if call and call[0] in ("delete_entities", "create_entities")
            for name in _names(call)
        }
        gained, lost = after.relations - self.before.relations, self.before.relations - after.relations
        assert {each for each in gained if each != foreign and not {each[0], each[2]} & named} == set(), undone.reasons
        assert {each for each in lost if not {each[0], each[2]} & (named | taken)} == set(), undone.reasons


def _names(call: Call | None) -> set[str]:
    if call is None:
        return set()
    arguments = call[1]
    entities = {each["name"] for each in arguments.get("entities", ())}
    related = {each[end] for each in arguments.get("relations", ()) for end in ("from", "to")}
    observed = {each["entityName"] for name in ("observations", "deletions") for each in arguments.get(name, ())}
    return entities | related | observed | set(arguments.get("entityNames", ()))


FILE_TRIALS = given(
    calls=st.lists(file_calls(), min_size=1, max_size=7),
    foreign=st.none() | PATHS,
    losses=LOSSES,
    attempts=st.integers(1, 3),
)
MEMORY_TRIALS = given(
    calls=st.lists(MEMORY_CALLS, min_size=1, max_size=7),
    foreign=st.none() | st.tuples(NAMES, st.just("met"), NAMES),
    losses=LOSSES,
    attempts=st.integers(1, 3),
)


@EVERYDAY
@FILE_TRIALS
def test_files(sqlite_db: Database, files: Files, **trial: Any) -> None:
    FileTrial(files).check(**trial)


@EVERYDAY
@MEMORY_TRIALS
def test_memory(sqlite_db: Database, memory: Memory, **trial: Any) -> None:
    MemoryTrial(memory).check(**trial)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@LONG
@FILE_TRIALS
def test_many_files(sqlite_db: Database, files: Files, **trial: Any) -> None:
    FileTrial(files).check(**trial)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@LONG
@MEMORY_TRIALS
def test_many_memories(sqlite_db: Database, memory: Memory, **trial: Any) -> None:
    MemoryTrial(memory).check(**trial)
