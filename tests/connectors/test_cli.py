from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from connectors.catalog import connector_spec, fs
from connectors.cli import run_command
from connectors.core.connector import Connector
from tests.connectors.test_surface import call_of
from tests.connectors.trees import tree_of, undo_arguments

COMMAND = (sys.executable, "-m", "connectors")


def run(*arguments: str, given: object = None, text: str | None = None) -> subprocess.CompletedProcess[str]:
    sent = json.dumps(given) if text is None else text
    return subprocess.run([*COMMAND, *arguments], input=sent, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", ["fs", "all"])
def test_manifests_prints_what_the_tables_say(name: str) -> None:
    as_yaml = run("manifests", name, "--format", "yaml")
    as_json = run("manifests", name, "--format", "json")

    assert (as_yaml.returncode, as_json.returncode) == (0, 0)
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout) == connector_spec("fs").manifests()
    assert "&id" not in as_yaml.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["undo"],
        ["manifests"],
        ["manifests", "ftp"],
        ["manifests", "fs", "--format", "toml"],
        ["compensate", "--token", "x"],
        ["compensate", "--root", "missing"],
        ["read", "--root", "missing"],
        ["read", "extra"],
    ],
)
def test_wrong_usage_exits_64(arguments: list[str]) -> None:
    done = run(*arguments)

    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [[], ["manifests"], ["serve"], ["compensate"], ["read"]])
def test_help_shows_an_example(command: list[str]) -> None:
    done = run(*command, "--help")

    assert done.returncode == 0
    assert "Example" in done.stdout


def undo_call(connector: Connector, root: Path) -> dict[str, Any]:
    (root / "a").write_text("old")
    result = connector.call("fs.write_file", {"path": "a", "content": "new"})
    return call_of(*undo_arguments(connector, "fs.write_file", result))


def test_compensate_undoes_and_prints_the_result(connector: Connector, root: Path) -> None:
    call = undo_call(connector, root)

    first = run("compensate", "--root", str(root), given=call)
    second = run("compensate", "--root", str(root), given=call)

    assert (first.returncode, first.stderr, second.returncode) == (0, "", 0)
    assert json.loads(first.stdout)["already_restored"] is False
    assert json.loads(second.stdout)["already_restored"] is True
    assert (root / "a").read_text() == "old"


def test_compensate_guards_newer_work_until_told(connector: Connector, root: Path) -> None:
    call = undo_call(connector, root)
    (root / "a").write_text("newer")

    refused = run("compensate", "--root", str(root), given=call)
    allowed = run("compensate", "--root", str(root), given={**call, "overwrite": True})

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("changed since: a ")
    assert (allowed.returncode, (root / "a").read_text()) == (0, "old")


def test_compensate_takes_a_backup_directory(root: Path, outside: Path) -> None:
    connector = fs.build(root, outside / "kept")
    call = undo_call(connector, root)

    done = run("compensate", "--root", str(root), "--backup-dir", str(outside / "kept"), given=call)

    assert (done.returncode, (root / "a").read_text()) == (0, "old")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", 64, "the input is not JSON"),
        ("{", 64, "the input is not JSON"),
        ("[" * 100_000, 64, "the input is not JSON"),
        ('{"step": NaN}', 64, "NaN is no JSON value"),
        ("[]", 64, "a call must be a JSON object"),
        ('{"tool": "fs.restore_file"}', 64, "not a compensation call: argument run_id is required"),
        (json.dumps(call_of("fs.restore_file", {"path": "../a"})), 1, "argument backup is required"),
        (json.dumps(call_of("fs.remove_dir", {"path": "../a", "created": []})), 1, "../a: a path must not contain"),
        (json.dumps(call_of("fs.stat", {"path": "a"})), 1, "fs.stat only reads"),
        (json.dumps(call_of("ftp.put", {})), 1, "no enabled connector offers ftp.put"),
    ],
)
def test_compensate_refuses(root: Path, text: str, code: int, words: str) -> None:
    done = run("compensate", "--root", str(root), text=text)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert tree_of(root, is_with_backups=True) == {}


def test_compensate_refuses_bytes_that_are_no_text(root: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "compensate", "--root", str(root)], input=b"\xff", capture_output=True, check=False, timeout=60
    )

    assert done.returncode == 64


def test_compensate_that_cannot_tell_its_result_leaves_the_outcome_open(connector: Connector, root: Path) -> None:
    call = undo_call(connector, root)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "compensate", "--root", str(root)],
            input=json.dumps(call).encode(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )

    assert done.returncode == 75
    assert b"the undo may have happened" in done.stderr


class Interrupted(io.BytesIO):
    """A standard input at which somebody presses Ctrl-C."""

    def read(self, size: int | None = -1, /) -> bytes:
        raise KeyboardInterrupt


def test_compensate_that_is_interrupted_leaves_the_outcome_open(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Interrupted()))

    code = run_command(["compensate", "--root", str(root)])

    assert code == 75
    assert capsys.readouterr().err.startswith("interrupted")


def test_read_answers(root: Path) -> None:
    (root / "a").write_text("x")

    done = run("read", "--root", str(root), given={"tool": "fs.stat", "arguments": {"path": "a"}})

    assert (done.returncode, json.loads(done.stdout)["kind"]) == (0, "file")


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"tool": "fs.stat", "arguments": {"path": "/etc"}}, 1, "absolute paths are refused"),
        ({"tool": "fs.write_file", "arguments": {"path": "a", "content": ""}}, 1, "fs.write_file changes things"),
        ({"tool": "fs.restore_file", "arguments": {}}, 1, "fs.restore_file changes things"),
        ({"tool": "ftp.get", "arguments": {}}, 1, "no enabled connector offers ftp.get"),
        ({"tool": 1}, 64, 'an object with "tool" and "arguments"'),
        ({"tool": "fs.stat", "arguments": []}, 64, '"arguments" must be an object'),
    ],
)
def test_read_refuses(root: Path, given: object, code: int, words: str) -> None:
    done = run("read", "--root", str(root), given=given)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert list(root.iterdir()) == []
