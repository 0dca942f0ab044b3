"""The record of what gateways on a store have served: whole, private, and never guessed from."""

import multiprocessing
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.core.upstream_specs import UpstreamSpec
from reversi_site.configuration import Configuration, ConnectorUpstream
from reversi_site.recorded_upstreams import (
    FILE_NAME,
    RecordDamaged,
    Recorded,
    UpstreamElsewhere,
    load_recorded,
    place_of,
    record_upstream,
)

FILES = UpstreamSpec(name="files-a1", command=("npx", "server", "/work"), cwd=Path("/work"), env=(("TOKEN", "secret"),))
REMOTE = UpstreamSpec(
    name="remote", url="https://mcp.example.org/mcp", headers=(("Authorization", "secret"),), is_live=True
)
CONNECTOR = ConnectorUpstream(name="fs", connector="fs", root=Path("/work"), backup_dir=None)


def test_what_was_recorded_is_read_back_without_its_secrets(tmp_path: Path) -> None:
    record_upstream(tmp_path, "files-a1", spec=FILES, connectors=[CONNECTOR], tools=["write_file", "read_file"])
    record_upstream(tmp_path, "remote", spec=REMOTE)

    found = load_recorded(tmp_path)

    without_env = UpstreamSpec(name="files-a1", command=FILES.command, cwd=FILES.cwd)
    tools = frozenset({"write_file", "read_file"})
    assert found["files-a1"] == Recorded(without_env, tools, (CONNECTOR,))
    assert found["remote"] == Recorded(UpstreamSpec(name="remote", url=REMOTE.url, is_live=True), None)
    assert "secret" not in (tmp_path / FILE_NAME).read_text()
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_nothing_was_recorded_yet(tmp_path: Path) -> None:
    assert load_recorded(tmp_path) == {}


def test_a_listing_that_could_not_be_had_leaves_the_last_one(tmp_path: Path) -> None:
    record_upstream(tmp_path, "files-a1", spec=FILES, tools=["write_file"])

    record_upstream(tmp_path, "files-a1", spec=FILES, tools=None)

    assert load_recorded(tmp_path)["files-a1"].tools == frozenset({"write_file"})


def test_of_a_configured_upstream_only_the_tools_are_recorded(tmp_path: Path) -> None:
    record_upstream(tmp_path, "shop", tools=["shop.order"])

    assert load_recorded(tmp_path) == {"shop": Recorded(None, frozenset({"shop.order"}))}


def test_a_name_is_not_given_to_another_upstream(tmp_path: Path) -> None:
    record_upstream(tmp_path, "files", tools=["write_file"], place="/projects/a")
    record_upstream(tmp_path, "files", place="/projects/a")

    with pytest.raises(UpstreamElsewhere, match="the one at /projects/a, not the one at /projects/b"):
        record_upstream(tmp_path, "files", tools=["other"], place="/projects/b")

    assert load_recorded(tmp_path)["files"] == Recorded(None, frozenset({"write_file"}), place="/projects/a")


def test_place_of_an_upstream_is_its_folder_or_url_without_credentials() -> None:
    remote = UpstreamSpec(name="remote", url="https://me:secret@mcp.example.org/mcp?key=secret")
    configuration = Configuration(servers=(FILES, remote), connectors=(CONNECTOR,))

    places = {name: place_of(configuration, name) for name in ("files-a1", "remote", "fs", "none")}

    assert places == {"files-a1": "/work", "remote": "https://mcp.example.org/mcp", "fs": "/work", "none": None}


def test_place_is_the_same_from_wherever_the_folder_was_named() -> None:
    roundabout = Configuration(
        servers=(replace(FILES, cwd=Path("/elsewhere/../work")),),
        connectors=(replace(CONNECTOR, root=Path("/elsewhere/../work/")),),
    )

    assert [place_of(roundabout, name) for name in ("files-a1", "fs")] == ["/work", "/work"]


def _record(folder: Path, number: int) -> None:
    record_upstream(folder, f"shop-{number}", tools=[f"tool-{number}"])


def test_gateways_that_start_at_once_all_stay_on_record(tmp_path: Path) -> None:
    processes = [multiprocessing.Process(target=_record, args=(tmp_path, number)) for number in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert sorted(load_recorded(tmp_path)) == [f"shop-{number}" for number in range(6)]


def cut(text: str) -> str:
    return text[:-20]


def other(text: str) -> str:
    return "[]"


def nameless(text: str) -> str:
    return '{"upstreams": {"shop": {"spec": {"command": []}, "tools": null}}}'


@pytest.mark.parametrize("damage", [cut, other, nameless], ids=lambda damage: damage.__name__)
def test_a_damaged_record_is_told_and_not_guessed_from(tmp_path: Path, damage: Callable[[str], str]) -> None:
    record_upstream(tmp_path, "files-a1", spec=FILES)
    path = tmp_path / FILE_NAME
    path.write_text(damage(path.read_text()))

    with pytest.raises(RecordDamaged, match="remove it"):
        load_recorded(tmp_path)
