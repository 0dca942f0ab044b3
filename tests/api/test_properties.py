"""Requests made up from the published description, against a live server: no error of ours, and no answer that the
description does not foresee."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from reversi_site.openapi import openapi_document
from tests.api.server import Server, live_server
from tests.api.world import Api, World, begin, open_run, succeed
from tests.databases import Database

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
# A request line of more than it reads, before anything of ours sees it.
REFUSED_BY_THE_SERVER = 414
# Schemathesis does not count it as a refusal.
TOO_LARGE = 413
EVERYDAY, MANY = 300, 2000


@dataclass(slots=True)
class Sender:
    """Sends what is made up, mostly about things that exist and as somebody who may."""

    server: Server
    world: World
    existing: Mapping[str, Sequence[Any]]
    session: requests.Session = field(default_factory=requests.Session)
    statuses: Counter[int] = field(default_factory=Counter)

    def send(self, case: Case[Any], choose: Callable[[Sequence[Any]], Any]) -> None:
        """Send the request and check the answer."""
        for name, values in self.existing.items():
            if name in case.path_parameters and choose((True, True, True, False)):
                case.path_parameters[name] = choose(values)
        if str(case.query.get("wait", "")).strip("+ ").isdecimal():
            # Any number is good, and a long one only takes its time.
            case.query["wait"] = 0
        who = choose(("agent", "agent", "operator", "admin", "approver"))
        headers = {"Authorization": f"Bearer {self.world.keys[who]}"}
        response = case.call(base_url=self.server.url, headers=headers, session=self.session, timeout=30)
        self.statuses[response.status_code] += 1
        if response.status_code != REFUSED_BY_THE_SERVER:
            is_refused = response.status_code == TOO_LARGE
            refusal = [negative_data_rejection] if is_wrong_inside(case) and not is_refused else []
            case.validate_response(response, checks=[*CHECKS, *refusal])


def is_wrong_inside(case: Case[Any]) -> bool:
    """Tell whether body or query were made up wrong; a wrong path or key is replaced before it is sent."""
    parts = case.meta.components if case.meta is not None else {}
    return any(
        place in parts and parts[place].mode is GenerationMode.NEGATIVE
        for place in (ParameterLocation.BODY, ParameterLocation.QUERY)
    )


def seeded(world: World) -> Mapping[str, Sequence[Any]]:
    """Make a run in every state, and a call that waits; returns what paths may name."""
    runs = [open_run(world.agent, id=f"run_{number}") for number in range(3)]
    approvals = []
    for run_id in runs:
        succeed(world.agent, run_id)
        begin(world.agent, run_id)
        approvals.append(begin(world.agent, run_id, tool="shop.pay").data["approval"]["id"])
    uncertain = {"status": "uncertain", "error": "no answer"}
    world.agent.post(f"runs/{runs[1]}/steps/1/complete", uncertain)
    world.agent.post(f"runs/{runs[2]}/close")
    return {"run_id": runs, "number": [0, 1], "approval_id": approvals}


@pytest.fixture
def sender(world: World, sqlite_db: Database, shop: Path) -> Iterator[Sender]:
    existing = seeded(world)
    with live_server(sqlite_db, manifests=shop) as server:
        sender = Sender(server, world, existing)
        yield sender
        sender.session.close()


def operations() -> list[Any]:
    schema: Any = schemathesis.openapi.from_dict(openapi_document())
    return [found.ok() for found in schema.get_all_operations()]


def make_up(sender: Sender, *, total: int) -> None:
    """Send about so many requests, as many of each operation, of the right form and of a wrong one in turn."""
    found = operations()
    for number, operation in enumerate(found):
        count = -(-total // (2 * len(found)))
        send_examples(sender, operation, GenerationMode.POSITIVE, count=count, number=number)
        try:
            send_examples(sender, operation, GenerationMode.NEGATIVE, count=count, number=number)
        except Unsatisfiable:
            # It takes nothing that could be of a wrong form.
            send_examples(sender, operation, GenerationMode.POSITIVE, count=count, number=-1 - number)


def send_examples(sender: Sender, operation: Any, mode: GenerationMode, *, count: int, number: int) -> None:
    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), chance=st.integers(0, 2**32))
    def send(case: Case[Any], chance: int) -> None:
        sender.send(case, random.Random(chance).choice)

    send()


@pytest.mark.parametrize(
    "total", [EVERYDAY, pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.timeout(900)])], ids=str
)
def test_made_up_requests_are_answered_as_described(
    sender: Sender, total: int, record_count: Callable[[str, object], None]
) -> None:
    make_up(sender, total=total)

    sent = sum(sender.statuses.values())
    record_count("requests made up from the description", sent)
    assert sent >= total
    assert {200, 400, 403} <= sender.statuses.keys()
    assert Api(sender.world.keys["agent"]).get("runs").status == 200
