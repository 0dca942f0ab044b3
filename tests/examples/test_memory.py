"""What the official memory server did is undone, but for the residue that is told, or named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from reversi_sdk.model import Effect
from tests.databases import Database
from tests.examples.graphs import graph_of, write_graph
from tests.examples.runs import manifests_of, plan, play, undo
from tests.examples.servers import Memory
from tests.examples.sessions import (
    FIRST_RELATIONS,
    LOST_RELATIONS,
    Calls,
    memory_session,
    relation,
)


def entity(name: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": "thing", "observations": list(observations)}


def create(*names: str) -> tuple[str, dict[str, Any]]:
    return "create_entities", {"entities": [entity(name) for name in names]}


def delete(*names: str) -> tuple[str, dict[str, Any]]:
    return "delete_entities", {"entityNames": list(names)}


def add(**contents: Sequence[str]) -> tuple[str, dict[str, Any]]:
    observed = [{"entityName": name, "contents": list(texts)} for name, texts in contents.items()]
    return "add_observations", {"observations": observed}


def take(**contents: Sequence[str]) -> tuple[str, dict[str, Any]]:
    deleted = [{"entityName": name, "observations": list(texts)} for name, texts in contents.items()]
    return "delete_observations", {"deletions": deleted}


def relate(*relations: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return "create_relations", {"relations": list(relations)}


def part(*relations: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return "delete_relations", {"relations": list(relations)}


def test_a_whole_session_is_undone_but_for_the_residue(db: Database, memory: Memory) -> None:
    before = graph_of(memory.path)

    errors = play(world=memory, calls=memory_session())
    after = graph_of(memory.path)
    promised = plan()
    undone = undo(world=memory)

    assert [number for number, error in enumerate(errors) if error is not None] == [6], errors
    assert after != before
    assert (promised, undone.reasons, undone.report.is_complete) == ({}, {}, True)
    assert graph_of(memory.path).entities == before.entities
    assert graph_of(memory.path).relations == before.relations - Counter(LOST_RELATIONS)


def test_every_tool_of_the_server_has_a_manifest(memory: Memory) -> None:
    offered = memory.server.list_tools()

    reading = {tool for tool, listed in offered.items() if listed["annotations"]["readOnlyHint"]}
    entries = manifests_of("memory").entries
    assert entries.keys() == offered.keys()
    assert {tool for tool, entry in entries.items() if entry.manifest.effect is Effect.READ_ONLY} == reading


def names(count: int) -> list[str]:
    return [f"E{number}" for number in range(count)]


MANY: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "create_entities": lambda count: create(*(f"new {name}" for name in names(count))),
    "add_observations": lambda count: add(**{name: ["seen"] for name in names(count)}),
    "delete_observations": lambda count: take(**{name: ["a"] for name in names(count)}),
    "delete_entities": lambda count: delete(*names(count)),
    "create_relations": lambda count: relate(*(relation("E0", "knows", name) for name in names(count))),
    "delete_relations": lambda count: part(*(relation("E0", "likes", name) for name in names(count))),
}
LIMITED = ("create_entities", "add_observations", "delete_observations")


def fill(memory: Memory, count: int) -> None:
    """Have that many entities, each with observations, and liked by the first."""
    entities = [entity(name, "a", "b") for name in names(count)]
    write_graph(memory.path, entities, [relation("E0", "likes", name) for name in names(count)])


@pytest.mark.parametrize("tool", MANY)
def test_sixteen_in_one_call_are_undone(sqlite_db: Database, memory: Memory, tool: str) -> None:
    fill(memory, 16)
    before = graph_of(memory.path)
    play(world=memory, calls=[MANY[tool](16)])

    undone = undo(world=memory)

    assert (undone.reasons, undone.verified) == ({}, {0})
    assert graph_of(memory.path).entities == before.entities
    assert (graph_of(memory.path).relations == before.relations) is (tool != "delete_entities")


@pytest.mark.parametrize("tool", MANY)
def test_seventeen_in_one_call_are_never_undone_by_halves(sqlite_db: Database, memory: Memory, tool: str) -> None:
    fill(memory, 17)
    before = graph_of(memory.path)

    errors = play(world=memory, calls=[MANY[tool](17)])
    after = graph_of(memory.path)
    promised = plan()
    undone = undo(world=memory)

    assert (errors, after != before) == ([None], True)
    if tool in LIMITED:
        assert promised[0].startswith("unrecoverable: cannot capture the state before: ")
        assert undone.reasons == promised
        assert graph_of(memory.path) == after
    else:
        assert (promised, undone.reasons) == ({}, {})
        assert graph_of(memory.path).entities == before.entities


RESIDUE: dict[str, Calls] = {
    "an observed entity": [add(Ada=["sings"]), delete("Bo")],
    "its observations in another order": [add(Ada=["sings"]), take(Ada=["likes tea"])],
    "a created entity": [create("Cy"), relate(relation("Cy", "knows", "Bo")), delete("Bo")],
    "a relation that went with an entity": [relate(relation("Ada", "likes", "Bo")), delete("Bo")],
    "a relation deleted beside it": [part(FIRST_RELATIONS[0]), delete("Bo")],
    "an entity deleted and made again": [delete("Ada"), create("Ada"), add(Ada=["sings"]), delete("Ada")],
    "entities in another order": [add(Ada=["x"], Bo=["y"]), take(Ada=["x"], Bo=["y"]), delete("Ada")],
    "relations in another order": [
        part(FIRST_RELATIONS[0], FIRST_RELATIONS[1]),
        relate(FIRST_RELATIONS[1], FIRST_RELATIONS[0]),
        part(FIRST_RELATIONS[1]),
    ],
}


@pytest.mark.parametrize("case", RESIDUE)
def test_residue_of_later_steps_does_not_stop_earlier_ones(sqlite_db: Database, memory: Memory, case: str) -> None:
    before = graph_of(memory.path)
    play(world=memory, calls=RESIDUE[case])

    undone = undo(world=memory)

    told = [residue for entry in undone.report.entries for residue in entry.residue]
    assert (undone.reasons, undone.report.is_complete) == ({}, True)
    assert graph_of(memory.path).entities == before.entities
    lost = before.relations - graph_of(memory.path).relations
    assert not lost or "the relations from and to the deleted entities do not come back" in told
    assert graph_of(memory.path).relations == before.relations - lost


FOREIGN: dict[str, tuple[Calls, tuple[str, dict[str, Any]]]] = {
    "a created entity is observed": ([create("Cy")], add(Cy=["sings"])),
    "a created entity is related": ([create("Cy")], relate(relation("Bo", "knows", "Cy"))),
    "a created entity is gone": ([create("Cy")], delete("Cy")),
    "an observed entity is observed": ([add(Ada=["sings"])], add(Ada=["dances"])),
    "an observation is gone": ([add(Ada=["sings"])], take(Ada=["likes tea"])),
    "a deleted entity is made again": ([delete("Bo")], create("Bo")),
    "an unobserved entity is observed": ([take(Ada=["likes tea"])], add(Ada=["likes coffee"])),
    "a deleted relation is made again": ([part(FIRST_RELATIONS[0])], relate(FIRST_RELATIONS[0])),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_newer_work_stops_an_undo(sqlite_db: Database, memory: Memory, case: str) -> None:
    calls, (tool, args) = FOREIGN[case]
    play(world=memory, calls=calls)
    memory.server.call(tool, args)
    before = graph_of(memory.path)

    undone = undo(world=memory)

    assert undone.reasons == {0: f"failed: changed since: {reader_of(calls)} shows newer work than this run's"}
    assert graph_of(memory.path) == before


def reader_of(calls: Calls) -> str:
    return "read_graph" if calls[0][0] == "delete_relations" else "open_nodes"


ELSEWHERE: dict[str, tuple[Calls, tuple[str, dict[str, Any]]]] = {
    "another entity": ([create("Cy"), add(Ada=["sings"]), delete("Bo")], create("Zoe")),
    "another relation": ([part(FIRST_RELATIONS[0]), delete("Bo")], relate(relation("Ada", "knows", "Zoe"))),
    "a relation of another": ([relate(relation("Ada", "likes", "Bo"))], part(FIRST_RELATIONS[0])),
    "a relation of an observed entity": ([add(Ada=["sings"])], relate(relation("Ada", "knows", "Zoe"))),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_work_on_other_things_stays_and_stops_nothing(sqlite_db: Database, memory: Memory, case: str) -> None:
    calls, (tool, args) = ELSEWHERE[case]
    before = graph_of(memory.path)
    play(world=memory, calls=calls)
    memory.server.call(tool, args)

    undone = undo(world=memory)

    assert undone.reasons == {}
    memory.server.call("delete_entities", {"entityNames": ["Zoe"]})
    lost = before.relations - graph_of(memory.path).relations
    assert graph_of(memory.path).entities == before.entities
    assert set(lost) <= {("Bo", "knows", "Ada"), ("Ada", "member of", "Chess club")}


def test_members_that_the_server_drops_do_not_hide_a_relation(sqlite_db: Database, memory: Memory) -> None:
    before = graph_of(memory.path)
    calls = [part({**FIRST_RELATIONS[0], "since": 2020}), relate({**relation("Ada", "likes", "Bo"), "since": 2020})]

    errors = play(world=memory, calls=calls)
    after = graph_of(memory.path)
    undone = undo(world=memory)

    assert (errors, after != before) == ([None, None], True)
    assert undone.reasons == {}
    assert graph_of(memory.path) == before


LOSSES = [(False,), (True,), (False, True), (True, True)]


@pytest.mark.parametrize("losses", LOSSES, ids=str)
@pytest.mark.parametrize("tool", MANY)
def test_a_lost_answer_of_an_undo_is_settled_by_looking(
    sqlite_db: Database, memory: Memory, tool: str, losses: tuple[bool, ...]
) -> None:
    fill(memory, 3)
    before = graph_of(memory.path)
    play(world=memory, calls=[MANY[tool](3)])
    memory.lost.plan.extend(losses)

    undone = undo(world=memory, attempts=3)

    assert (undone.reasons, undone.verified) == ({}, {0})
    assert graph_of(memory.path).entities == before.entities


def test_a_step_that_cannot_be_undone_holds_up_earlier_ones(sqlite_db: Database, memory: Memory) -> None:
    play(world=memory, calls=[create("Cy"), create(*names(17)), create("Dee")])

    undone = undo(world=memory)

    assert {number: reason.partition(":")[0] for number, reason in undone.reasons.items()} == {
        0: "deferred",
        1: "unrecoverable",
    }
    assert {"Cy", "E0", "Ada"} <= graph_of(memory.path).names
    assert "Dee" not in graph_of(memory.path).names
