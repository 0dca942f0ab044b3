"""Which tools a step of which upstream reaches: the upstream itself, its connectors, a command, or nobody."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from gateway.core.upstream_specs import UpstreamSpec
from gateway.executors import Reached
from reversi_site.configuration import Configuration, ConnectorUpstream
from reversi_site.recorded_upstreams import record_upstream
from reversi_site.wiring import Held, build_tools
from rollback.core.ports import UndoCall, UndoFailed, Undone, why_not_here


class Door:
    """Upstreams that must not be asked."""

    def ask(self, question: Callable[[Reached], Awaitable[Any]], *, within_s: float) -> Any:
        raise AssertionError("asked")


@pytest.fixture
def data(tmp_path: Path) -> Any:
    folder = tmp_path / "data"
    folder.mkdir()
    with override_settings(DATA=folder):
        yield folder


def connector(root: Path, *, name: str = "fs") -> ConnectorUpstream:
    root.mkdir(exist_ok=True)
    return ConnectorUpstream(name=name, connector="fs", root=root, backup_dir=None)


def undo(path: Path) -> UndoCall:
    return UndoCall(
        run_id="run_v",
        step=0,
        tool="fs.remove_file",
        original_tool="write_file",
        args={"path": str(path)},
        idempotency_key="k",
        timeout_ms=5000,
    )


SHOP = UpstreamSpec(name="shop", command=("shop-server",))
LIVE = UpstreamSpec(name="browser", command=("browser-server",), is_live=True)


def test_a_configured_server_runs_what_it_is_known_to_offer(data: Path) -> None:
    record_upstream(data, "shop", tools=["shop.cancel"])

    tools = build_tools(Configuration(servers=(SHOP,)))

    assert tools.is_reaching
    assert tools.can_run("shop.cancel", "shop")
    assert not tools.can_run("shop.refund", "shop")
    assert not tools.can_run("shop.cancel", "another")


def test_a_server_that_a_gateway_recorded_is_reached_too(data: Path) -> None:
    record_upstream(data, "shop-a1", spec=UpstreamSpec(name="shop-a1", command=("shop-server",)), tools=["order"])

    tools = build_tools(Configuration())

    assert tools.can_run("order", "shop-a1")
    assert not tools.can_run("order", "shop-b2")


def test_nothing_configured_reaches_nothing(data: Path) -> None:
    tools = build_tools(Configuration())

    assert not tools.is_reaching
    assert not tools.can_run("shop.cancel", "shop")


def test_a_live_session_is_waited_for_and_not_imitated(data: Path) -> None:
    tools = build_tools(Configuration(servers=(LIVE,)))

    there = tools.at("browser")

    assert tools.can_run("click", "browser")
    assert (there.waits_for, there.executor.can_run("click")) == ("browser", False)
    assert why_not_here("click", there).endswith("the session of browser is live in its gateway, or has ended")


def test_whoever_holds_the_live_session_waits_for_nobody_but_for_every_other_session(data: Path) -> None:
    held = {"browser#mine": Held(Door(), frozenset({"click"}))}

    tools = build_tools(Configuration(servers=(LIVE,)), held=held)

    mine, other = tools.at("browser#mine"), tools.at("browser#other")
    assert (mine.waits_for, mine.executor.can_run("click")) == (None, True)
    assert (other.waits_for, other.executor.can_run("click")) == ("browser#other", False)


def test_each_upstream_is_undone_with_the_connectors_of_its_own_gateway(data: Path, tmp_path: Path) -> None:
    here, there = connector(tmp_path / "here"), connector(tmp_path / "there")
    record_upstream(data, "files-a1", connectors=[here])
    record_upstream(data, "files-b2", connectors=[there])
    made = tmp_path / "here" / "made.txt"
    made.write_text("by the agent")
    tools = build_tools(Configuration())

    wrong, right = (tools.at(name).executor.compensate(undo(made)) for name in ("files-b2", "files-a1"))

    assert isinstance(wrong, UndoFailed)
    assert right == Undone()
    assert not made.exists()


def test_a_recorded_connector_whose_root_is_gone_runs_nothing(data: Path, tmp_path: Path) -> None:
    gone = connector(tmp_path / "gone")
    record_upstream(data, "files-a1", connectors=[gone])
    (tmp_path / "gone").rmdir()

    assert not build_tools(Configuration()).can_run("fs.remove_file", "files-a1")
    assert not build_tools(Configuration(connectors=(connector(tmp_path / "other"),))).can_run(
        "fs.remove_file", "files-a1"
    )


def test_a_name_that_another_configuration_gave_is_not_asked_for_undos(data: Path, tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    record_upstream(data, "shop", tools=["shop.cancel"], place=str(there))
    record_upstream(data, "fs", place=str(there))
    elsewhere, same = replace(SHOP, cwd=here), replace(SHOP, cwd=there)

    tools = build_tools(Configuration(servers=(elsewhere,), connectors=(connector(here),)))
    right = build_tools(Configuration(servers=(same,), connectors=(connector(there),)))
    other_names = build_tools(Configuration(connectors=(connector(here, name="files"),)))

    for_shop, for_fs = ("shop.cancel", "shop"), ("fs.remove_file", "fs")
    assert [tools.can_run(*for_shop), tools.can_run(*for_fs), tools.can_run("fs.remove_file", "shop")] == [False] * 3
    assert not tools.at("fs").can_read("fs.stat")
    assert not other_names.can_run(*for_fs)
    assert [right.can_run(*for_shop), right.can_run(*for_fs), right.can_run("fs.remove_file", "shop")] == [True] * 3


def test_a_command_given_by_hand_comes_before_the_upstream(data: Path) -> None:
    held = {"shop": Held(Door(), frozenset({"shop.cancel"}))}

    tools = build_tools(Configuration(), compensator_cmd="true", held=held)

    assert tools.at("shop").executor.compensate(undo(Path("/x"))) == Undone()
