"""A connector as an MCP server: what goes over the wire, in both eras of the protocol, and how a session ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import pytest

from connectors.catalog import connector_spec
from connectors.core.outcomes import EffectUncertainError
from connectors.core.tool import CallContext
from connectors.serving import answer, listed_tools
from reversi_sdk.model import Effect
from tests.connectors.core.tables import CANCEL, GET, ORDER, shop
from tests.connectors.test_surface import call_of
from tests.connectors.trees import tree_of

HANDSHAKES = ("2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*HANDSHAKES, MODERN)

Message = dict[str, Any]


def envelope() -> Message:
    """What every request carries since the handshake is gone."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }


def opening(revision: str) -> Sequence[Message]:
    if revision == MODERN:
        return ()
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return (
        {"jsonrpc": "2.0", "id": "opening", "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    )


def request(
    id: int, method: str, *, revision: str = MODERN, meta: Mapping[str, Any] | None = None, **params: Any
) -> Message:
    carried = {**(envelope() if revision == MODERN else {}), **(meta or {})}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": carried}}


def call(id: int, tool: str, arguments: Message, **more: Any) -> Message:
    return request(id, "tools/call", name=tool, arguments=arguments, **more)


def command(root: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "connectors", "serve", "fs", "--root", str(root), *options]


@dataclass(frozen=True, slots=True)
class Session:
    """A whole session that was written down beforehand: its answers by id, and how it ended."""

    answers: Mapping[Any, Message]
    lines: Sequence[str]
    code: int
    stderr: str


def session(root: Path, *messages: Message | str, revision: str = MODERN, options: Sequence[str] = ()) -> Session:
    sent = [*opening(revision), *messages]
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in sent)
    done = subprocess.run(command(root, *options), input=text, capture_output=True, text=True, check=False, timeout=60)
    lines = done.stdout.splitlines()
    answers = {message["id"]: message for message in map(json.loads, lines) if "id" in message}
    return Session(answers, lines, done.returncode, done.stderr)


@pytest.mark.parametrize("revision", REVISIONS)
def test_serve_lists_every_tool_as_the_table_declares_it(root: Path, revision: str) -> None:
    done = session(root, request(1, "tools/list", revision=revision), revision=revision)

    listed = {tool["name"]: tool for tool in done.answers[1]["result"]["tools"]}
    spec = connector_spec("fs")
    assert {name: tool["inputSchema"] for name, tool in listed.items()} == spec.input_schemas
    assert {name: tool["description"] for name, tool in listed.items()} == {
        name: row.description for name, row in spec.tools.items()
    }
    marked = {name for name, tool in listed.items() if tool.get("_meta", {}).get("reversi/compensation_only")}
    assert marked == {name for name, row in spec.tools.items() if row.is_compensation_only}
    assert listed["fs.stat"]["annotations"] == {"readOnlyHint": True}
    assert (done.code, done.stderr) == (0, "")


@pytest.mark.parametrize("revision", REVISIONS)
def test_serve_answers_a_call_as_structure_and_as_text(root: Path, revision: str) -> None:
    done = session(root, call(1, "fs.stat", {"path": "ä"}, revision=revision), revision=revision)

    result = done.answers[1]["result"]
    absent = {"exists": False, "kind": None, "sha256": None, "mode": None}
    assert result["structuredContent"] == absent
    assert json.loads(result["content"][0]["text"]) == absent
    assert not result.get("isError")


@pytest.mark.parametrize("revision", REVISIONS)
def test_serve_answers_a_definite_failure_as_an_error_result(root: Path, revision: str) -> None:
    done = session(root, call(1, "fs.read_file", {"path": "/etc/passwd"}, revision=revision), revision=revision)

    result = done.answers[1]["result"]
    assert result["isError"] is True
    assert "absolute paths are refused" in result["content"][0]["text"]
    assert "reversi/outcome" not in result.get("_meta", {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({}, "argument path is required"), ({"path": 1}, "must be a string"), ({"path": "a", "x": 1}, "unknown argument")],
)
def test_serve_checks_arguments(root: Path, arguments: Message, words: str) -> None:
    done = session(root, call(1, "fs.make_dir", arguments))

    assert done.answers[1]["result"]["isError"] is True
    assert words in done.answers[1]["result"]["content"][0]["text"]
    assert list(root.iterdir()) == []


def test_serve_knows_an_unknown_tool_by_name(root: Path) -> None:
    error = session(root, call(1, "ftp.put", {})).answers[1]["error"]

    assert (error["code"], error["message"]) == (-32602, "connector fs has no tool ftp.put")


def test_serve_undoes(root: Path) -> None:
    (root / "a").write_text("old")
    before = tree_of(root, is_with_backups=False)
    written = session(root, call(1, "fs.write_file", {"path": "a", "content": "new"})).answers[1]["result"]
    facts = written["structuredContent"]
    undo = {name: facts[name] for name in ("path", "backup", "previous", "left")}

    done = session(root, call(1, "fs.restore_file", undo, meta={"idempotency_key": "k" * 64}))

    assert done.answers[1]["result"]["structuredContent"]["already_restored"] is False
    assert tree_of(root, is_with_backups=False) == before


def test_serve_goes_over_newer_work_only_when_told(root: Path) -> None:
    facts = session(root, call(1, "fs.write_file", {"path": "a", "content": "x"})).answers[1]["result"]
    undo = {name: facts["structuredContent"][name] for name in ("path", "backup", "previous", "left")}
    (root / "a").write_text("newer")

    refused = session(root, call(1, "fs.restore_file", undo))
    allowed = session(root, call(1, "fs.restore_file", undo, meta={"reversi/overwrite": True}))

    assert refused.answers[1]["result"]["content"][0]["text"].startswith("changed since: ")
    assert not allowed.answers[1]["result"].get("isError")
    assert not (root / "a").exists()


def test_serve_keeps_backups_where_it_is_told(root: Path, outside: Path) -> None:
    (root / "a").write_text("x")

    session(root, call(1, "fs.delete_file", {"path": "a"}), options=("--backup-dir", str(outside / "kept")))

    assert (outside / "kept").is_dir()
    assert list(root.iterdir()) == []


def test_serve_lets_lines_be_that_are_no_messages(root: Path) -> None:
    done = session(root, "not json", "", "[]", '{"jsonrpc": "2.0"}', '"\\ud800"', call(1, "fs.list_dir", {}))

    assert list(done.answers) == [1]
    assert (done.code, len(done.lines)) == (0, 1)


def test_serve_answers_what_was_asked_before_the_input_ended(root: Path) -> None:
    done = session(root, *(call(number, "fs.make_dir", {"path": f"d{number}"}) for number in range(30)))

    assert sorted(done.answers) == list(range(30))
    assert len(list(root.iterdir())) == 30


def test_serve_takes_and_gives_long_lines(root: Path) -> None:
    content = "ä" * 1_000_000

    done = session(root, call(1, "fs.write_file", {"path": "a", "content": content}), revision=MODERN)
    read = session(root, call(1, "fs.read_file", {"path": "a"}))

    assert done.answers[1]["result"]["structuredContent"]["size"] == 2_000_000
    assert read.answers[1]["result"]["structuredContent"]["content"] == content


def test_serve_ends_at_a_line_without_end(root: Path) -> None:
    done = session(root, "x" * (33 * 1024 * 1024))

    assert (done.code, done.lines) == (64, [])
    assert "longer than" in done.stderr


@contextmanager
def served(words: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=30)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def ask(process: subprocess.Popen[bytes], message: Message) -> Message:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    answered: Message = json.loads(process.stdout.readline())
    return answered


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_ends_at_a_signal_though_the_input_stays_open(root: Path, number: signal.Signals) -> None:
    with served(command(root)) as process:
        ask(process, call(1, "fs.list_dir", {}))

        process.send_signal(number)
        code = process.wait(timeout=30)

        assert process.stderr is not None
        assert (code, process.stderr.read()) == (0, b"")


def test_serve_ends_when_nobody_reads_its_answers(root: Path) -> None:
    with served(command(root)) as process:
        ask(process, call(1, "fs.list_dir", {}))
        assert process.stdin is not None
        assert process.stdout is not None

        process.stdout.close()
        process.stdin.write(json.dumps(call(2, "fs.make_dir", {"path": "d"})).encode() + b"\n")

        assert process.wait(timeout=30) == 0
        assert (root / "d").is_dir()


def test_serve_answers_into_a_file_and_from_one(root: Path, tmp_path: Path) -> None:
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    asked.write_text(json.dumps(call(1, "fs.list_dir", {})))

    with asked.open() as source, answered.open("w") as sink:
        done = subprocess.run(command(root), stdin=source, stdout=sink, check=False, timeout=60)

    assert done.returncode == 0
    assert json.loads(answered.read_text())["result"]["structuredContent"]["entries"] == []


HANGING = """
import sys
from pathlib import Path
from dataclasses import replace
from connectors.core.connector import ConnectorSpec
from connectors.serving import serve
from tests.connectors.core.tables import GET

def hang(state, arguments, context):
    return {"read": Path(arguments["id"]).read_text()}

serve(ConnectorSpec("shop", (replace(GET, run=hang),)).bind(None))
"""


@contextmanager
def hanging(pipe: Path) -> Iterator[tuple[subprocess.Popen[bytes], IO[str]]]:
    """A server in the middle of a call that ends when something was written into the pipe that is given."""
    os.mkfifo(pipe)
    with served([sys.executable, "-c", HANGING]) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(call(1, "shop.get", {"id": str(pipe)})).encode() + b"\n")
        # Opening it waits for the call to have opened the other end.
        with pipe.open("w") as end:
            yield process, end


def test_serve_finishes_its_calls_after_a_signal(tmp_path: Path) -> None:
    with hanging(tmp_path / "pipe") as (process, end):
        process.send_signal(signal.SIGTERM)
        end.write("done")
        end.close()

        assert process.wait(timeout=30) == 0
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["result"]["structuredContent"] == {"read": "done"}


def test_serve_ends_at_a_second_signal_whatever_is_going_on(tmp_path: Path) -> None:
    with hanging(tmp_path / "pipe") as (process, _):
        for _attempt in range(100):
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.3)
                break

        assert process.returncode == -signal.SIGTERM


PRINTING = """
import sys, os
from connectors.core.connector import ConnectorSpec
from connectors.serving import serve
from tests.connectors.core.tables import GET
from dataclasses import replace

def noisy(state, arguments, context):
    print("a word from the tool")
    os.system("echo a word from its child; cat")
    return {"id": arguments["id"]}

serve(ConnectorSpec("shop", (replace(GET, run=noisy),)).bind(None))
print("a word at the end", flush=True)
"""


def test_serve_keeps_stray_output_off_the_wire() -> None:
    asked = json.dumps(call(1, "shop.get", {"id": "1"}))

    done = subprocess.run(
        [sys.executable, "-c", PRINTING],
        input=f"{asked}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    (line,) = done.stdout.splitlines()
    assert json.loads(line)["result"]["structuredContent"] == {"id": "1"}
    assert {"a word from the tool", "a word from its child", "a word at the end"} <= set(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ftp"], "'ftp'"),
        ([], "Missing argument"),
        (["fs", "--root", "missing"], "missing"),
        (["fs", "--token", "x"], "--token"),
    ],
)
def test_serve_refuses_wrong_usage(arguments: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "connectors", "serve", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stdout) == (64, "")
    assert words in done.stderr


def test_answer_passes_the_key() -> None:
    connector = shop(GET, CANCEL).bind(None)

    result = answer(connector, "shop.cancel", {"id": "1"}, {"idempotency_key": "k" * 64, "progressToken": 1})

    assert result["structuredContent"]["key"] == "k" * 64


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"idempotency_key": 7}, "_meta.idempotency_key must be a string"),
        ({"reversi/overwrite": "yes"}, "_meta.reversi/overwrite must be a boolean"),
    ],
)
def test_answer_refuses_metadata_of_another_type(meta: Message, words: str) -> None:
    result = answer(shop(GET, CANCEL).bind(None), "shop.cancel", {"id": "1"}, meta)

    assert result == {"content": [{"type": "text", "text": words}], "isError": True}


def lose(*_: Any) -> Any:
    raise EffectUncertainError("POST /orders: 502")


def break_down(*_: Any) -> Any:
    raise RuntimeError("a bug")


@pytest.mark.parametrize(("run", "words"), [(lose, "POST /orders: 502"), (break_down, "shop.order broke down")])
def test_answer_says_that_an_outcome_is_unknown(run: Any, words: str) -> None:
    connector = shop(GET, replace(ORDER, run=run), CANCEL).bind(None)

    result = answer(connector, "shop.order", {"what": "tea"}, {})

    assert (result["isError"], result["_meta"]) == (True, {"reversi/outcome": "uncertain"})
    assert words in result["content"][0]["text"]


@pytest.mark.parametrize("value", [[1, None], "text", 3, None])
def test_answer_gives_what_is_no_object_as_text_alone(value: object) -> None:
    def give(_state: object, _arguments: Mapping[str, Any], _context: CallContext) -> Any:
        return value

    result = answer(shop(replace(GET, run=give)).bind(None), "shop.get", {"id": "1"}, {})

    assert result.keys() == {"content"}
    assert json.loads(result["content"][0]["text"]) == value


@pytest.mark.parametrize(
    ("effect", "hints"),
    [
        (Effect.READ_ONLY, {"readOnlyHint": True}),
        (Effect.IDEMPOTENT, {"readOnlyHint": False, "idempotentHint": True}),
        (Effect.REVERSIBLE, {"readOnlyHint": False}),
        (Effect.COMPENSABLE, {"readOnlyHint": False}),
        (Effect.IRREVERSIBLE, {"readOnlyHint": False}),
    ],
)
def test_listed_tools_hint_at_what_the_row_declares(effect: Effect, hints: Mapping[str, bool]) -> None:
    (listed,) = listed_tools(shop(replace(GET, effect=effect)).bind(None))

    assert listed["annotations"] == hints


def test_serve_and_compensate_undo_alike(root: Path) -> None:
    facts = session(root, call(1, "fs.make_dir", {"path": "d"})).answers[1]["result"]["structuredContent"]
    undo = {name: facts[name] for name in ("path", "created")}
    subprocess.run(
        [sys.executable, "-m", "connectors", "compensate", "--root", str(root)],
        input=json.dumps(call_of("fs.remove_dir", undo)),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    again = session(root, call(1, "fs.remove_dir", undo))

    assert again.answers[1]["result"]["structuredContent"]["already_removed"] is True
