"""Configured commands: what they get, what each ending means, and what they may not have (D27)."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rollback.core.errors import OptionsInvalid
from rollback.core.ports import Answer, ReadFailed, UndoCall, UndoFailed, Undone, UndoNotRun, UndoUnknown
from rollback.executors.command import CheckingExecutor, CommandExecutor, CommandReader
from rollback.executors.process import How, run_command, scrubbed, split_command


def python(source: str) -> Sequence[str]:
    return (sys.executable, "-c", source)


def make_call(**fields: Any) -> UndoCall:
    usual: dict[str, Any] = {
        "run_id": "run_v",
        "step": 2,
        "tool": "stripe.refund",
        "original_tool": "stripe.create_charge",
        "args": {"charge_id": "ch_ö9"},
        "idempotency_key": "k1",
        "timeout_ms": 20_000,
    }
    return UndoCall(**{**usual, **fields})


def undo(source: str, **fields: Any) -> Any:
    return CommandExecutor(python(source)).compensate(make_call(**fields))


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("", Undone()),
        ("import sys; sys.exit('no such charge')", UndoFailed("no such charge")),
        ("import sys; print('a\\nlast words\\n', file=sys.stderr); sys.exit(3)", UndoFailed("last words")),
        ("import sys; sys.exit(3)", UndoFailed("exit 3")),
        ("import sys; print('gateway timeout', file=sys.stderr); sys.exit(75)", UndoUnknown("gateway timeout")),
        ("import os; os.kill(os.getpid(), 9)", UndoUnknown("the command was killed by signal 9")),
        ("import os; os.kill(os.getpid(), 15)", UndoUnknown("the command was killed by signal 15")),
    ],
    ids=["undone", "failed", "last line", "silent", "unknown", "killed", "terminated"],
)
def test_compensate_reads_how_the_command_ended(source: str, answer: Any) -> None:
    assert undo(source) == answer


def test_compensate_hands_over_exactly_the_call(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"

    undo(f"import sys; open({str(seen)!r}, 'w').write(sys.stdin.read())")

    assert json.loads(seen.read_text()) == {
        "run_id": "run_v",
        "step": 2,
        "tool": "stripe.refund",
        "original_tool": "stripe.create_charge",
        "args": {"charge_id": "ch_ö9"},
        "idempotency_key": "k1",
    }


def test_compensate_says_when_newer_work_may_be_overwritten(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"

    undo(f"import sys; open({str(seen)!r}, 'w').write(sys.stdin.read())", is_overwrite_allowed=True)

    assert json.loads(seen.read_text())["overwrite"] is True


@pytest.mark.parametrize("program", ["/nowhere/at-all", "/", "a\0b"], ids=["missing", "a folder", "no name"])
def test_compensate_with_a_command_that_cannot_be_started_ran_nothing(program: str) -> None:
    answer = CommandExecutor((program,)).compensate(make_call())

    assert isinstance(answer, UndoNotRun)
    assert "cannot be started" in answer.error


def test_compensate_does_not_wait_for_ever(tmp_path: Path) -> None:
    begun = time.monotonic()

    answer = undo("import time; time.sleep(60)", timeout_ms=200)

    assert answer == UndoUnknown("the command did not end in time and was killed")
    assert time.monotonic() - begun < 20


def test_a_time_out_ends_the_whole_process_group(tmp_path: Path) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    child = f"import time; held = open({str(fifo)!r}, 'w'); held.write('up'); held.flush(); time.sleep(60)"
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"

    ended = run_command(python(parent), stdin=b"", timeout_ms=1_500)

    assert ended.how is How.TIMED_OUT
    os.set_blocking(reader, True)
    # The end of the stream comes only when nobody holds its other side any more.
    assert os.read(reader, 10) in (b"up", b"")
    assert os.read(reader, 10) == b""
    os.close(reader)


def test_a_command_that_leaves_its_output_open_is_not_waited_for() -> None:
    parent = "import subprocess; print('1'); subprocess.Popen(['sleep', '5'])"

    begun = time.monotonic()
    ended = run_command(python(parent), stdin=b"", timeout_ms=20_000)

    assert (ended.how, ended.code) == (How.EXITED, 0)
    assert time.monotonic() - begun < 5


def test_a_command_that_ignores_its_input_is_fine() -> None:
    assert run_command(python(""), stdin=b"x" * 1_000_000, timeout_ms=20_000).code == 0


def test_secrets_stay_with_us(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = (
        "REVERSI_SECRET_KEY",
        "REVERSI_LEDGER_KEYS",
        "REVERSI_CALL_KEY_SECRET",
        "REVERSI_API_KEY",
        "DATABASE_URL",
        "PGPASSWORD",
    )
    for name in ours:
        monkeypatch.setenv(name, "s3cr3t")
    monkeypatch.setenv("STRIPE_API_KEY", "theirs")

    ended = run_command(python("import os, json; print(json.dumps(dict(os.environ)))"), stdin=b"", timeout_ms=20_000)

    seen = json.loads(ended.output)
    assert "s3cr3t" not in seen.values()
    assert seen["STRIPE_API_KEY"] == "theirs"


def test_scrubbed_keeps_what_is_not_ours() -> None:
    assert scrubbed({"PATH": "/bin", "REVERSI_DATA": "x", "DJANGO_SETTINGS_MODULE": "y"}) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("text", "words"),
    [("./undo.sh", ("./undo.sh",)), ("undo --root 'a b' $HOME", ("undo", "--root", "a b", "$HOME"))],
)
def test_split_command(text: str, words: tuple[str, ...]) -> None:
    assert split_command(text) == words


@pytest.mark.parametrize("text", ["", "   ", "undo 'open"])
def test_split_command_refuses_what_is_no_command(text: str) -> None:
    with pytest.raises(OptionsInvalid):
        split_command(text)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("print('{\"refunded\": true}')", Answer({"refunded": True})),
        ("print('null')", Answer(None)),
        ("print('not json')", ReadFailed("the reader printed something that is not JSON")),
        ("", ReadFailed("the reader printed something that is not JSON")),
        ("import sys; print('{}'); sys.exit('no such charge')", ReadFailed("no such charge")),
        ("import os; os.kill(os.getpid(), 9)", ReadFailed("the command was killed by signal 9")),
        ("print('[' * 100000)", ReadFailed("the reader printed something that is not JSON")),
        (
            "import sys; sys.stdout.buffer.write(b'\"\\xff\"')",
            ReadFailed("the reader printed something that is not JSON"),
        ),
    ],
    ids=["answer", "null", "no json", "nothing", "failed", "killed", "bottomless", "not text"],
)
def test_read_takes_what_the_command_prints(source: str, answer: Any) -> None:
    assert CommandReader(python(source)).read("t", {}, timeout_ms=20_000) == answer


def test_read_hands_over_tool_and_arguments() -> None:
    reader = CommandReader(python("import sys; print(sys.stdin.read())"))

    assert reader.read("stripe.get_charge", {"id": "ch_1"}, timeout_ms=20_000) == Answer(
        {"tool": "stripe.get_charge", "arguments": {"id": "ch_1"}}
    )


def test_read_does_not_take_more_than_it_can_bear() -> None:
    source = "import sys; sys.stdout.write('1' * (9 << 20))"

    answer = CommandReader(python(source)).read("t", {}, timeout_ms=20_000)

    assert isinstance(answer, ReadFailed)
    assert "more than" in answer.error


def test_commands_take_every_tool_and_promise_to_honour_the_key() -> None:
    executor, reader = CommandExecutor(("undo",)), CommandReader(("read",))

    assert (executor.can_run("any"), executor.honours_key("any"), reader.can_read("any")) == (True, True, True)


class Unkeyed(CommandExecutor):
    def honours_key(self, tool: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("executor", "check", "answer"),
    [
        (CommandExecutor(python("")), "", Undone),
        (CommandExecutor(python("")), "import sys; sys.exit(1)", UndoUnknown),
        (Unkeyed(python("")), "import sys; sys.exit(1)", UndoUnknown),
        (CommandExecutor(python("import sys; sys.exit(75)")), "", UndoUnknown),
        (CommandExecutor(python("import sys; sys.exit(1)")), "", UndoFailed),
    ],
    ids=["confirmed", "refuted", "refuted without a key", "unknown", "failed"],
)
def test_a_check_confirms_an_undo_or_leaves_it_in_doubt(executor: Any, check: str, answer: type) -> None:
    checking = CheckingExecutor(executor, python(check))

    assert isinstance(checking.compensate(make_call()), answer)
    assert (checking.can_run("t"), checking.honours_key("t")) == (True, executor.honours_key("t"))


def test_a_check_gets_the_same_call(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    check = python(f"import sys; open({str(seen)!r}, 'w').write(sys.stdin.read())")

    CheckingExecutor(CommandExecutor(python("")), check).compensate(make_call())

    assert json.loads(seen.read_text()) == make_call().to_json()
