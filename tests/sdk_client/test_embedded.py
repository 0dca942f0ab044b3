"""The private server of an embedded client: it works alone, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reversi_sdk import Client, EmbeddedServerFailed
from tests.postgres import REPOSITORY
from tests.reversi_site.test_worker import eventually
from tests.sdk_client.downstream import Shop

AGENT = """
import sys
from reversi_sdk import Client
client = Client.embedded(data="store")
run = client.run("run_1", scope=["*"], mode="observe")
print(client.url, flush=True)
sys.stdin.read()
"""


def environment(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(REPOSITORY), "REVERSI_CONFIG": str(folder / "reversi.config.yaml")}


def left_in(folder: Path) -> list[str]:
    """The command lines of living processes that work on the folder's store."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"REVERSI_DATA={folder / 'store'}\0".encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_an_embedded_client_calls_plans_and_rolls_back(folder: Path, shop: Shop) -> None:
    with Client.embedded(folder / "store", environ=environment(folder)) as client:
        key = client._address.api_key
        with client.run(actor="buyer", scope=["shop:*"]) as run:
            run.call("shop.order", {"item": "book"}, execute=shop.order)
        report = run.rollback(compensate=shop.undo)
        assert client.existing_run(run.id).report()["complete"] is True
        assert len(left_in(folder)) > 2

    assert report["complete"] is True
    assert left_in(folder) == []
    with Client.embedded(folder / "store", environ=environment(folder)) as again:
        assert again._address.api_key != key
        assert [each["id"] for each in again.runs()] == [run.id]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_private_server_does_not_outlive_its_client(folder: Path, number: int) -> None:
    agent: subprocess.Popen[Any] = subprocess.Popen(
        [sys.executable, "-c", AGENT],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with agent:
        assert agent.stdout is not None
        assert agent.stdout.readline().startswith("http://127.0.0.1:")

        agent.send_signal(number)
        agent.wait()

        assert eventually(lambda: left_in(folder) == [])


def test_a_private_server_that_cannot_start_says_why(folder: Path) -> None:
    (folder / "reversi.config.yaml").write_text("nonsense: 1\n")

    with pytest.raises(EmbeddedServerFailed, match="nonsense: unknown setting"):
        Client.embedded(folder / "store", environ=environment(folder))

    assert left_in(folder) == []
