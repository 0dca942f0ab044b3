"""Who calls: keys in the header, and nothing else."""

from __future__ import annotations

import pytest

from tests.api.world import Api, World


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Basic YTpi",
        "Bearer rk_x",
        "Bearer rk_abcdefghij_secret",
        "Bearer ü",
        "Bearer " + "x" * 100_000,
        "Token rk_x",
        "Bearer rk__",
        "Bearer rk_%00_x",
    ],
)
def test_missing_and_unknown_keys_are_asked_for_one(any_world: World, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}

    answer = Api(None).send("GET", "runs", headers=headers)

    assert (answer.status, answer.data["code"]) == (401, "auth_required")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="reversi"'


@pytest.mark.parametrize("who", ["revoked", "expired"])
def test_refused_keys_are_not_told_why(world: World, who: str) -> None:
    refused, unknown = world.api(who).get("runs"), Api("rk_x").get("runs")

    assert refused.data == unknown.data


def test_scheme_is_written_in_any_case(world: World) -> None:
    assert Api(None).send("GET", "runs", headers={"Authorization": f"bEARER {world.keys['agent']}"}).status == 200


def test_key_with_its_secret_altered_is_unknown(world: World) -> None:
    token = world.keys["agent"]

    assert Api(token[:-1] + ("a" if token[-1] != "a" else "b")).get("runs").status == 401
