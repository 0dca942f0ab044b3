"""`reversi-gateway` as its users see it: what it refuses, and whole processes before a server of their own."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from connectors.catalog import connector_spec
from reversi_site.gateway_cli import main
from tests.gateway.mcp.servers.pids import is_running, noted_pids
from tests.gateway.mcp.wires import ERAS, Streams
from tests.postgres import REPOSITORY

PATIENCE_S = 60
PLAIN = ("-m", "tests.gateway.mcp.servers.plain_stdio")
HOSTILE = ("-m", "tests.gateway.mcp.servers.hostile_stdio")
SHELF = "tests.gateway.mcp.servers.shelf_stdio"
MANIFEST = {"tool": "echo", "effect": "read_only", "permission": "echo:say"}


def command_line(*args: str) -> list[str]:
    return [sys.executable, "-m", "reversi_site.gateway_cli", *args]


def upstream(*args: str, program: str = sys.executable) -> list[str]:
    return ["--upstream-cmd", program, *(word for arg in args for word in ("--upstream-arg", arg))]


@pytest.fixture
def manifests(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([MANIFEST, {**MANIFEST, "tool": "silent", "effect": "idempotent"}]))
    return str(path)


WRONG: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "give --upstream-cmd, --upstream-url or --connector"),
    "two upstreams": (["--upstream-cmd", "a", "--upstream-url", "http://x"], "exclude each other"),
    "arguments of nothing": (["--upstream-arg", "a"], "--upstream-arg belongs to --upstream-cmd"),
    "arguments of a url": (["--upstream-url", "http://x", "--upstream-arg", "a"], "belongs to --upstream-cmd"),
    "a command line": (["--upstream-cmd", "npx -y server"], "names one program"),
    "no program": (["--upstream-cmd", " "], "must not be empty"),
    "no url": (["--upstream-url", "server"], "must begin with http"),
    "a url that cannot be read": (["--upstream-url", "http://[::1"], "must begin with http"),
    "a connector without a root": (["--connector", "fs"], "needs --root"),
    "a root of nothing": (["--root", "."], "belong to --connector"),
    "no address": (["--http", "8001"], "must be HOST:PORT"),
    "no port": (["--http", "localhost:x"], "must be HOST:PORT"),
    "no mode": (["--mode", "loose"], "is not one of"),
    "no run": (["--run-id", "a b"], "is no run id"),
    "no manifests": (["--manifests", "gone.yaml"], "does not exist"),
    "no configuration": (["--config", "gone.yaml"], "does not exist"),
    "a mode over HTTP": (["--http", "[::1]:0", "--mode", "observe"], "--mode does not go with --http"),
    "an operator over HTTP": (["--http", "h:0", "--operator"], "--operator does not go with --http"),
    "no subcommand": (["start"], "No such command"),
}


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # What the command sets is taken back with the rest.
    monkeypatch.setenv("REVERSI_CONFIG", "")
    return tmp_path


@pytest.mark.parametrize("case", WRONG)
def test_gateway_refuses_wrong_options_and_writes_nothing(
    in_folder: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    args, words = WRONG[case]

    code = main(args)

    said = capsys.readouterr()
    assert (code, said.out) == (64, "")
    assert words in said.err
    assert list(in_folder.iterdir()) == []


INVALID: dict[str, tuple[str, str, str]] = {
    "manifests": ("--manifests", "tools.yaml", "tool: [1]"),
    "configuration": ("--config", "reversi.config.yaml", "upstream: []"),
}


@pytest.mark.parametrize("case", INVALID)
def test_gateway_refuses_invalid_files_in_a_line(
    in_folder: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    option, name, text = INVALID[case]
    (in_folder / name).write_text(text)

    code = main([option, name, "--upstream-cmd", "server"])

    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert said.err.startswith("reversi-gateway: ")
    assert name in said.err


def test_gateway_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    said = capsys.readouterr().out
    assert "init" in said
    assert "Examples:" in said


def environment(folder: Path, **extra: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": str(REPOSITORY), "REVERSI_DATA": str(folder / "data"), **extra}


@contextmanager
def started(folder: Path, *args: str, **extra: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a gateway whose standard error is kept in a file; none is left when the block ends."""
    with (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            command_line(*args),
            cwd=folder,
            env=environment(folder, **extra),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@asynccontextmanager
async def client_of(process: subprocess.Popen[bytes], *, era: str = "2026") -> AsyncIterator[Client]:
    """Speak to the process through the official client; every line it prints must be a message."""
    to_client, from_gateway = create_context_streams[SessionMessage | Exception](0)
    to_gateway, from_client = create_context_streams[SessionMessage | Exception](0)

    async def read() -> None:
        assert process.stdout is not None
        async with to_client:
            while line := await anyio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True):
                await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def write() -> None:
        assert process.stdin is not None
        async for item in from_client:
            assert isinstance(item, SessionMessage)
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            process.stdin.flush()

    async with from_gateway, to_gateway, from_client, to_client:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                tasks.start_soon(write)
                async with Client(Streams(from_gateway, to_gateway), mode=ERAS[era], cache=None) as client:
                    yield client
                tasks.cancel_scope.cancel()


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process whose client has left."""
    if process.stdin is not None:
        process.stdin.close()
    return process.wait(PATIENCE_S)


def states(folder: Path) -> list[tuple[str, str, str]]:
    with sqlite3.connect(folder / "data" / "reversi.sqlite3") as database:
        rows = database.execute("SELECT tool, state, upstream FROM ledger_step ORDER BY number").fetchall()
    database.close()
    return rows


def test_who_starts_it_by_hand_is_told_that_a_client_does(tmp_path: Path, manifests: str) -> None:
    terminal, standard_input = os.openpty()
    process = subprocess.Popen(
        command_line(*upstream(*PLAIN), "--manifests", manifests),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=standard_input,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )

    with process, os.fdopen(terminal, "wb"), os.fdopen(standard_input, "rb"):
        assert process.stderr is not None
        told = process.stderr.readline()
        process.kill()

    assert b"waiting for an MCP client" in told


@pytest.mark.parametrize("era", ERAS)
def test_gateway_serves_a_client_and_leaves_nothing_behind(tmp_path: Path, manifests: str, era: str) -> None:
    pids, calls = tmp_path / "pids", []
    args = [*upstream(*PLAIN, "--pid-file", str(pids)), "--manifests", manifests]

    async def main(process: subprocess.Popen[bytes]) -> list[str]:
        async with client_of(process, era=era) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            answer = await client.call_tool("echo", {"text": "hello"})
            calls.append(answer.model_dump(by_alias=True))
            return names

    with started(tmp_path, *args) as process:
        names = anyio.run(main, process)
        code = ended(process)

    (recorded,) = json.loads((tmp_path / "data" / "upstreams.json").read_text())["upstreams"].items()
    assert (code, names[-2:], calls[0]["isError"]) == (0, ["reversi.run", "reversi.plan_rollback"], False)
    assert states(tmp_path) == [("echo", "succeeded", recorded[0])]
    assert recorded[1]["spec"]["command"] == [sys.executable, *PLAIN, "--pid-file", str(pids)]
    assert "echo" in recorded[1]["tools"]
    assert [pid for pid in noted_pids(pids) if is_running(pid)] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_gateway_cleanly_in_mid_call(tmp_path: Path, manifests: str, number: signal.Signals) -> None:
    pids, arrived = tmp_path / "pids", tmp_path / "arrived"
    args = [*upstream(*HOSTILE, "--pid-file", str(pids), "--calls", str(arrived)), "--manifests", manifests]

    async def main(process: subprocess.Popen[bytes]) -> None:
        async with client_of(process) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(call_in_vain, client, "silent")
            while not arrived.exists():
                await anyio.lowlevel.checkpoint()
            process.send_signal(number)

    with started(tmp_path, *args) as process:
        anyio.run(main, process)
        code = ended(process)

    assert (code, [state for _, state, _ in states(tmp_path)]) == (0, ["uncertain"])
    assert [pid for pid in noted_pids(pids) if is_running(pid)] == []


async def call_in_vain(client: Client, tool: str) -> None:
    with pytest.raises(Exception, match=r"closed"):
        await client.call_tool(tool, {})


def test_upstream_that_cannot_start_does_not_end_the_gateway(tmp_path: Path, manifests: str) -> None:
    args = [*upstream(program=str(tmp_path / "gone")), "--manifests", manifests]

    async def main(process: subprocess.Popen[bytes]) -> Any:
        async with client_of(process) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    with started(tmp_path, *args) as process:
        names = anyio.run(main, process)
        code = ended(process)

    assert (code, names) == (0, ["reversi.run", "reversi.plan_rollback"])
    assert "cannot be started" in (tmp_path / "errors").read_text()


def test_connector_beside_a_server_is_not_offered(tmp_path: Path, manifests: str) -> None:
    args = [*upstream(*PLAIN), "--manifests", manifests, "--connector", "fs", "--root", str(tmp_path)]

    async def main(process: subprocess.Popen[bytes]) -> tuple[list[str], Any]:
        async with client_of(process) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, (await client.call_tool("fs.write_file", {"path": "a", "content": ""})).structured_content

    with started(tmp_path, *args) as process:
        names, answer = anyio.run(main, process)
        ended(process)

    assert [name for name in names if name.startswith("fs.")] == []
    assert answer["error"]["code"] == "unknown_tool"


def test_connectors_of_two_gateways_on_one_store_each_undo_in_their_own_root(tmp_path: Path) -> None:
    (tmp_path / "fs.json").write_text(json.dumps(connector_spec("fs").manifests()))

    def gateway(root: str) -> list[str]:
        (tmp_path / root).mkdir()
        return ["--connector", "fs", "--root", root, "--manifests", "fs.json", "--operator"]

    async def write(process: subprocess.Popen[bytes]) -> str:
        async with client_of(process) as client:
            answer = await client.call_tool("fs.write_file", {"path": "made.txt", "content": "by the agent"})
            return str((answer.meta or {})["reversi/step"]["run"])

    async def undo(process: subprocess.Popen[bytes]) -> Any:
        async with client_of(process) as client:
            answer = await client.call_tool("reversi.execute_rollback", {"run": run, "confirm": True})
            return answer.structured_content

    with started(tmp_path, *gateway("a")) as process:
        run = anyio.run(write, process)
        ended(process)
    with started(tmp_path, *gateway("b")) as process:
        answer = anyio.run(undo, process)
        ended(process)

    assert answer["report"]["complete"] is True
    assert not (tmp_path / "a" / "made.txt").exists()


def test_live_session_is_undone_by_no_other_gateway_of_the_same_configuration(tmp_path: Path) -> None:
    reading: dict[str, Any] = {"effect": "read_only", "permission": "shelf:read"}
    compensation = {"tool": "remove", "argument_map": {"book": "$args.book"}}
    manifests = [
        {"tool": "remove", "effect": "idempotent", "permission": "shelf:write", "compensation_only": True},
        {"tool": "add", "effect": "reversible", "permission": "shelf:write", "compensation": compensation},
        {**reading, "tool": "list"},
    ]
    (tmp_path / "tools.json").write_text(json.dumps(manifests))
    entry = {"name": "shelf", "cmd": sys.executable, "args": ["-m", SHELF], "session": "live"}
    configuration = {"manifests": "tools.json", "upstreams": [entry]}
    (tmp_path / "reversi.config.json").write_text(json.dumps(configuration))
    args = ["--config", "reversi.config.json", "--operator"]

    async def main(one: subprocess.Popen[bytes], other: subprocess.Popen[bytes]) -> list[Any]:
        async with client_of(one) as maker, client_of(other) as stranger:
            added = await maker.call_tool("add", {"book": "Emma"})
            undo = {"run": (added.meta or {})["reversi/step"]["run"], "confirm": True, "retries": 1}
            reports = []
            for client in (stranger, maker):
                answer = await client.call_tool("reversi.execute_rollback", undo)
                report = (answer.structured_content or {})["report"]
                books = (await maker.call_tool("list", {})).structured_content
                reports.append((report["compensated"], report["complete"], books))
            return reports

    with started(tmp_path, *args) as one, started(tmp_path, *args) as other:
        by_stranger, by_maker = anyio.run(main, one, other)

    assert by_stranger == ([], False, {"books": ["Emma"]})
    assert by_maker == ([0], True, {"books": []})


def test_name_of_an_upstream_that_another_configuration_gave_ends_the_gateway_in_a_line(
    tmp_path: Path, manifests: str
) -> None:
    entry = {"name": "plain", "cmd": sys.executable, "args": list(PLAIN)}
    codes = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "reversi.config.json").write_text(json.dumps({"manifests": manifests, "upstreams": [entry]}))
        with started(tmp_path, "--config", f"{name}/reversi.config.json") as process:
            codes.append(ended(process))

    (line,) = (tmp_path / "errors").read_text().splitlines()
    assert codes == [0, 1]
    assert line.startswith(f"reversi-gateway: on this store the upstream plain is the one at {tmp_path / 'a'}, not ")


def test_gateway_serves_over_http_until_a_signal(tmp_path: Path, manifests: str) -> None:
    args = [*upstream(*PLAIN), "--manifests", manifests, "--http", "127.0.0.1:0"]

    with started(tmp_path, *args) as process:
        address = ""
        while not address and process.poll() is None:
            address = (tmp_path / "errors").read_text().partition("listening on ")[2].partition("\n")[0]
        with urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE_S) as answer:
            health = json.load(answer)
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE_S)

    assert (code, health) == (0, {"status": "ok", "upstreams": {"ready": 1, "down": 0}})


def test_store_that_cannot_be_used_ends_the_gateway_in_a_line(tmp_path: Path, manifests: str) -> None:
    args = [*upstream(*PLAIN), "--manifests", manifests]

    with started(tmp_path, *args, DATABASE_URL="postgres://nobody@127.0.0.1:9/none") as process:
        code = ended(process)
        out = process.stdout.read() if process.stdout else b""

    (line,) = (tmp_path / "errors").read_text().splitlines()
    assert (code, out) == (69, b"")
    assert line.startswith("reversi-gateway: the store cannot be used")
