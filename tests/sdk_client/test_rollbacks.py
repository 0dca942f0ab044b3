"""Rollbacks made by the caller's own process, and by the server for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors import all_connectors
from connectors.core.manifests import manifest_of
from reversi_sdk import Client, EffectUncertainError, JobStillRunning, Progress, Refusal, ReversiError, Run
from tests.databases import Database
from tests.sdk_client.downstream import Shop
from tests.sdk_client.proxies import losing_proxy
from tests.sdk_client.servers import Server, running_server
from tests.sdk_client.test_lost_answers import first_time

SCOPE = ("shop:*", "fs:*")
RETRY = {"attempts": 3, "base_ms": 1}
Connect = Callable[..., Client]


@pytest.fixture
def run(server: Server, keys: dict[str, str], connect: Connect) -> Run:
    return connect(server.url, keys["agent"]).run(scope=SCOPE)


@pytest.fixture
def any_run(any_server: Server, keys: dict[str, str], connect: Connect) -> Run:
    return connect(any_server.url, keys["agent"]).run(scope=SCOPE)


def work(run: Run, shop: Shop) -> None:
    run.call("shop.order", {"item": "book"}, execute=shop.order)
    run.call("shop.reserve", {"item": "lamp"}, execute=shop.order)
    run.call("shop.rename", {"id": "o1", "name": "torch"}, execute=shop.rename, reader=shop.read)


def test_the_callers_process_undoes_newest_first_and_everything_is_read_back(any_run: Run, shop: Shop) -> None:
    work(any_run, shop)
    sent: list[str] = []
    told: list[Progress] = []

    def undo(call: dict[str, Any]) -> None:
        sent.append(call["original_tool"])
        shop.undo(call)

    report = any_run.rollback(
        compensate=undo, verifier=shop.read, on_progress=told.append, digest=any_run.plan()["digest"], close=True
    )

    assert report["complete"] is True
    assert (report["compensated"], report["unchecked"], report["unverified"]) == ([0, 1, 2], [0, 2], [])
    assert sent == ["shop.rename", "shop.reserve", "shop.order"]
    assert shop.effects == {"order": 2, "shop.cancel": 2, "shop.restore": 1}
    assert [(each.done, each.total, each.step, each.word) for each in told] == [
        (1, 3, 2, "compensated"),
        (2, 3, 1, "compensated"),
        (3, 3, 0, "compensated"),
    ]
    assert any_run.refresh()["state"] == "closed"
    assert any_run.rollback(compensate=undo, verifier=shop.read)["compensated"] == [0, 1, 2]
    assert len(sent) == 3


def test_lost_answers_of_a_rollback_undo_nothing_twice(
    server: Server, keys: dict[str, str], connect: Connect, shop: Shop
) -> None:
    work(connect(server.url, keys["agent"]).run("run_1", scope=SCOPE), shop)
    with losing_proxy(server.port, first_time("/compensation", "/compensation/complete", "/plan")) as proxy:
        run = connect(proxy.url, keys["agent"]).existing_run("run_1")
        report = run.rollback(compensate=shop.undo, verifier=shop.read)

    assert (report["complete"], len(proxy.lost)) == (True, 7)
    assert shop.effects == {"order": 2, "shop.cancel": 2, "shop.restore": 1}


def test_a_failing_undo_is_retried_with_the_same_key(run: Run, shop: Shop) -> None:
    run.call("shop.order", {"item": "book"}, execute=shop.order)
    keys: list[str] = []

    def undo(call: dict[str, Any]) -> None:
        keys.append(call["idempotency_key"])
        if len(keys) < 3:
            raise [ValueError("busy"), EffectUncertainError("502")][len(keys) - 1]
        shop.undo(call)

    report = run.rollback(compensate=undo, retry=RETRY)

    assert report["complete"] is True
    assert (len(keys), len(set(keys))) == (3, 1)


def test_an_undo_that_keeps_failing_is_reported_with_its_error(run: Run, shop: Shop) -> None:
    work(run, shop)

    def undo(call: dict[str, Any]) -> None:
        raise ValueError("no such order")

    report = run.rollback(compensate=undo, retry=RETRY)

    assert report["complete"] is False
    failed = [(entry["step"], "no such order" in entry["error"]) for entry in report["failed"]]
    assert failed == [(0, True), (1, True), (2, True)]


NOT_CONFIRMED: dict[str, Callable[[Any], Any]] = {
    "false": lambda call: False,
    "nothing": lambda call: None,
    "an exception": lambda call: 1 / 0,
}


@pytest.mark.parametrize("check", NOT_CONFIRMED)
def test_an_undo_that_its_check_does_not_confirm_is_not_done(run: Run, shop: Shop, check: str) -> None:
    run.call("shop.order", {"item": "book"}, execute=shop.order)

    report = run.rollback(compensate=shop.undo, verify=NOT_CONFIRMED[check])

    assert [entry["step"] for entry in report["failed"]] == [0]
    assert "its check" in report["failed"][0]["error"]
    assert run.rollback(compensate=shop.undo, verify=shop.is_gone)["complete"] is True
    assert shop.effects["shop.cancel"] == 1


def test_a_read_back_that_shows_otherwise_fails_the_undo(run: Run, shop: Shop) -> None:
    run.call("shop.reserve", {"item": "lamp"}, execute=shop.order)

    report = run.rollback(compensate=lambda call: {"ok": True}, verifier=shop.read)

    assert "did not show the expected state" in report["failed"][0]["error"]
    assert run.rollback(compensate=shop.undo, verifier=shop.read)["complete"] is True


def test_without_a_verifier_a_declared_read_back_stays_open(run: Run, shop: Shop) -> None:
    run.call("shop.reserve", {"item": "lamp"}, execute=shop.order)

    report = run.rollback(compensate=shop.undo)

    assert (report["compensated"], report["unverified"], report["complete"]) == ([0], [0], False)


def test_an_interrupted_undo_is_reported_as_unknown(run: Run, shop: Shop) -> None:
    run.call("shop.order", {"item": "book"}, execute=shop.order)

    def undo(call: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.rollback(compensate=undo)

    assert run.step(0)["undo_outcome_unknown"] is True
    assert run.rollback(compensate=shop.undo)["complete"] is True


def test_a_part_of_a_run_is_undone_alone(run: Run, shop: Shop) -> None:
    work(run, shop)

    report = run.rollback(compensate=shop.undo, steps=[0])

    assert (report["compensated"], report["selection"]["steps"]) == ([0], [0])
    assert [step["state"] for step in run.steps()] == ["compensated", "succeeded", "succeeded"]


def test_unresolved_steps_are_settled_by_a_probe_and_then_undone(run: Run, shop: Shop) -> None:
    def lose(args: dict[str, Any]) -> None:
        if args["item"] != "pen":
            shop.order(args)
        raise TimeoutError

    for item in ("book", "lamp", "pen"):
        with pytest.raises(TimeoutError):
            run.call("shop.order", {"item": item}, execute=lose)
    assert run.rollback(compensate=shop.undo)["unresolved"] == [0, 1, 2]

    answers: list[Any] = [{"status": "succeeded", "result": {"id": "o0"}, "note": "found o0"}, None, "failed"]
    settled = run.reconcile(lambda step: answers[step["step"]])

    assert settled["settled"] == [{"step": 0, "state": "succeeded"}, {"step": 2, "state": "failed"}]
    assert [entry["step"] for entry in settled["open"]] == [1]
    report = run.rollback(compensate=shop.undo)
    assert (report["compensated"], report["unresolved"]) == ([0], [1])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The folder of a deployment whose worker reaches files."""
    (fs,) = all_connectors({"fs": {"root": tmp_path}})
    (tmp_path / "work").mkdir()
    (tmp_path / "reversi.config.yaml").write_text("manifests: fs.yaml\nupstreams: [{connector: fs, root: work}]\n")
    (tmp_path / "fs.yaml").write_text(json.dumps([manifest_of(tool) for tool in fs.tools.values()]))
    return tmp_path


def test_only_an_operator_has_the_server_roll_back_and_waits_for_its_report(
    sqlite_db: Database, files: Path, keys: dict[str, str], connect: Connect
) -> None:
    (fs,) = all_connectors({"fs": {"root": files / "work"}})
    with running_server(files, sqlite_db.url) as server:
        run = connect(server.url, keys["agent"]).run(scope=SCOPE)
        run.call("fs.make_dir", {"path": "notes"}, execute=lambda args: fs.call("fs.make_dir", args))
        with pytest.raises(Refusal) as refused:
            run.rollback()
        assert refused.value.code == "permission_denied"

        server.start_worker()
        told: list[Progress] = []
        operated = connect(server.url, keys["operator"]).existing_run(run.id)
        report = operated.rollback(on_progress=told.append, timeout=60)
        checked = operated.verify(timeout=60)

    assert (report["complete"], report["compensated"]) == (True, [0])
    assert checked["complete"] is True
    assert told[-1] == Progress(done=1, total=1)
    assert not (files / "work" / "notes").exists()


REFUSED: dict[str, dict[str, Any]] = {
    "an unknown way to retry": {"retry": {"tries": 3}},
    "too many attempts": {"retry": {"attempts": 11}},
    "a negative wait": {"retry": {"base_ms": -1}},
    "a verifier for the server": {"verifier": print},
    "overwriting by the caller": {"compensate": print, "overwrite": True},
    "a plan that was never shown": {"compensate": print, "digest": "0" * 64},
}


def test_options_that_cannot_be_meant_are_refused(run: Run) -> None:
    for options in REFUSED.values():
        with pytest.raises(ReversiError):
            run.rollback(**options)


def test_a_job_that_nobody_takes_up_is_not_waited_for_forever(
    server: Server, keys: dict[str, str], connect: Connect, run: Run, shop: Shop
) -> None:
    run.call("shop.order", {"item": "book"}, execute=shop.order)

    with pytest.raises(JobStillRunning, match="is a worker running") as raised:
        connect(server.url, keys["operator"]).existing_run(run.id).rollback(timeout=0.1)

    assert raised.value.job["state"] == "queued"
    with pytest.raises(Refusal) as refused:
        run.rollback(compensate=shop.undo)
    assert refused.value.code == "rollback_running"
