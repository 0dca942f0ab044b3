"""Bad input: a clear message, the right exit code, no traceback, and nothing written anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.reversi_site.conftest import Shell

LONG = "x" * 3000


@dataclass(frozen=True, slots=True)
class Case:
    args: tuple[str | bytes, ...]
    code: int
    says: str
    env: dict[str, str] = field(default_factory=dict)


CASES = {
    "no command": Case((), 64, "Usage: reversi"),
    "variable of a part that is not there": Case(
        ("runs", "list"), 1, "REVERSI_MANIFEST_PUBLIC_KEY: this version", {"REVERSI_MANIFEST_PUBLIC_KEY": "k.pem"}
    ),
    "unknown command": Case(("rollbak",), 64, "No such command"),
    "command that cannot be run": Case(
        ("rollback", "r", "--compensator-cmd", "./nope.sh"), 64, "is no program that can be run here"
    ),
    "unknown option": Case(("runs", "list", "--wat"), 64, "No such option"),
    "run id with a slash": Case(("runs", "show", "a/b"), 64, "is no run id"),
    "run id that is a path": Case(("plan", "../x"), 64, "is no run id"),
    "run id with a newline": Case(("plan", "a\nb"), 64, "is no run id"),
    "run id too long": Case(("plan", "r" * 129), 64, "is no run id"),
    "empty run id": Case(("plan", ""), 64, "is no run id"),
    "argument that is not UTF-8": Case(("runs", "list", "--actor", b"\xff\xfe"), 64, "argument 4 is not valid UTF-8"),
    "path that is not UTF-8": Case(("validate", b"caf\xe9.yaml"), 64, "argument 2 is not valid UTF-8"),
    "neither run nor --last": Case(("plan",), 64, "name a run, or say --last"),
    "run and --last": Case(("rollback", "r", "--last"), 64, "name a run, or say --last"),
    "steps that are no numbers": Case(("plan", "r", "--steps", "1,x"), 64, "must be step numbers"),
    "steps that are negative": Case(("plan", "r", "--steps", "-1"), 64, "must be step numbers"),
    "steps in other digits": Case(("plan", "r", "--steps", "١"), 64, "must be step numbers"),
    "two selections": Case(("plan", "r", "--steps", "1", "--to-step", "1"), 64, "cannot be combined"),
    "no retries": Case(("rollback", "r", "--retries", "0"), 64, "1<=x<=10"),
    "too many retries": Case(("rollback", "r", "--retries", "11"), 64, "1<=x<=10"),
    "digest that is none": Case(("rollback", "r", "--digest", "abc"), 64, "is no digest"),
    "command with an open quotation": Case(("rollback", "r", "--compensator-cmd", "sh '"), 64, "No closing quotation"),
    "empty command": Case(("rollback", "r", "--reader-cmd", " "), 64, "must not be empty"),
    "broken JSON": Case(
        ("resolve", "r", "0", "--status", "succeeded", "--note", "n", "--result", "{"), 64, "is not JSON"
    ),
    "NaN in JSON": Case(
        ("resolve", "r", "0", "--status", "succeeded", "--note", "n", "--result", "NaN"), 64, "no JSON"
    ),
    "JSON that is too deep": Case(
        ("resolve", "r", "0", "--status", "succeeded", "--note", "n", "--result", "[" * 100_000), 64, "is not JSON"
    ),
    "no note": Case(("resolve", "r", "0", "--status", "failed"), 64, "--note"),
    "blank note": Case(("resolve", "r", "0", "--status", "failed", "--note", "  "), 64, "must not be empty"),
    "note with a control character": Case(
        ("resolve", "r", "0", "--status", "failed", "--note", "a\x1b[2J"), 64, "control character U+001B"
    ),
    "note too long": Case(("resolve", "r", "0", "--status", "failed", "--note", LONG), 64, "at most 2000"),
    "unknown status": Case(("resolve", "r", "0", "--status", "done", "--note", "n"), 64, "'done' is not one of"),
    "result of a failed call": Case(
        ("resolve", "r", "0", "--status", "failed", "--note", "n", "--result", "1"), 64, "belongs to --status succeeded"
    ),
    "step that is no number": Case(("resolve", "r", "x", "--status", "failed", "--note", "n"), 64, "is not a valid"),
    "since that is no duration": Case(("runs", "list", "--since", "yesterday"), 64, "not a duration"),
    "since before there was time": Case(("runs", "list", "--since", "99999999d"), 64, "a hundred years"),
    "infinity in JSON": Case(
        ("resolve", "r", "0", "--status", "succeeded", "--note", "n", "--result", "[1e999]"),
        64,
        "1e999 is no JSON number",
    ),
    "blank halt reason": Case(("halt", "add", " "), 64, "must not be empty"),
    "halt reason too long": Case(("halt", "add", LONG), 64, "at most 500"),
    "kill switch without a file": Case(("kill-switch", "on"), 64, "name a FILE"),
    "kill switch in a folder that is not there": Case(("kill-switch", "on", "no/KILL"), 1, "No such file"),
    "manifests that are not there": Case(("validate", "nowhere"), 1, ""),
    "described manifests that are not there": Case(("plan", "r", "-m", "nowhere.yaml"), 1, "nowhere.yaml"),
    "no such configuration": Case(("--config", "gone.yaml", "runs", "list"), 64, "does not exist"),
    "a folder as configuration": Case(("--config", ".", "runs", "list"), 64, "is a directory"),
    "empty data folder": Case(("--data", "", "runs", "list"), 64, "must be the path of a folder"),
    "configuration that is not there": Case(
        ("kill-switch", "on"), 1, "nowhere.yaml", {"REVERSI_CONFIG": "nowhere.yaml"}
    ),
    "data folder that cannot be made": Case(("runs", "list"), 69, "cannot be used", {"REVERSI_DATA": "/proc/reversi"}),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_and_nothing_is_written(name: str, shell: Shell) -> None:
    case = CASES[name]

    done = shell.run(*case.args, **case.env)

    assert done.returncode == case.code, done
    assert case.says in done.stderr
    assert "Traceback" not in done.stderr
    assert shell.names() == []


def test_a_file_in_the_place_of_the_data_folder_is_left_alone(shell: Shell) -> None:
    (shell.folder / "data").write_text("mine")

    done = shell.run("--data", "data", "runs", "list")

    assert done.returncode == 69
    assert "choose another with --data" in done.stderr
    assert (shell.folder / "data").read_text() == "mine"
    assert shell.names() == ["data"]


def test_a_database_that_is_away_is_unavailable(shell: Shell) -> None:
    done = shell.run("runs", "list", DATABASE_URL="postgres://nobody:s3cret@127.0.0.1:1/none")

    assert done.returncode == 69
    assert "the store cannot be used" in done.stderr
    assert "s3cret" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://h/db", "use postgres://"),
        ("postgres://h:port/db", "DATABASE_URL"),
        ("postgres://h:5432/", "names no database"),
        ("nonsense", "use postgres://"),
    ],
)
def test_a_malformed_database_url_is_invalid(shell: Shell, url: str, says: str) -> None:
    done = shell.run("runs", "list", DATABASE_URL=url)

    assert done.returncode == 1
    assert says in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense: 1", "nonsense: unknown setting"),
        ("policy: x", "this version does not have it yet"),
        ("manifests: [", "reversi.config.yaml"),
        ("- a\n- b", "must be an object"),
        ("upstreams: [{connector: fs, rooot: x}]", "unknown key rooot"),
        ("upstreams: [{connector: fs}]", "fs needs root"),
        ("upstreams: [{name: crm, url: 'https://crm.example:99999/mcp'}]", "url: must begin with http"),
        ("reader_cmd: 7", "must be a non-empty text"),
        ("redaction: [token]", "redaction: 'token' is no reference"),
        ("redaction: [idempotency_key]", "redaction: 'idempotency_key' cannot be read here"),
        ("manifests: a\nmanifests: b", "reversi.config.yaml"),
    ],
)
def test_a_malformed_configuration_is_named_with_its_place(shell: Shell, text: str, says: str) -> None:
    (shell.folder / "reversi.config.yaml").write_text(text)

    done = shell.run("runs", "list")

    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("REVERSI_LEDGER_KEYS", "short", "the ledger key ring"),
        ("REVERSI_WORKERS", "many", "REVERSI_WORKERS"),
        ("REVERSI_WORKERS", "0", "REVERSI_WORKERS"),
    ],
)
def test_a_malformed_variable_is_named(shell: Shell, variable: str, value: str, says: str) -> None:
    done = shell.run("runs", "list", **{variable: value})

    assert done.returncode == 1
    assert says in done.stderr


def test_a_damaged_store_is_unavailable(shell: Shell) -> None:
    shell.run("runs", "list")
    (shell.folder / "reversi-data" / "reversi.sqlite3").write_bytes(b"not a database at all" * 500)

    done = shell.run("runs", "list")

    assert done.returncode == 69
    assert "file is not a database" in done.stderr


def test_an_unexpected_error_is_one_line_and_its_place_on_request(shell: Shell) -> None:
    broken = {"REVERSI_TOOLS": "reversi_site.nowhere.tools", "DJANGO_SETTINGS_MODULE": "reversi_site.nowhere"}

    done = shell.run("runs", "list", **broken)
    debugged = shell.run("runs", "list", REVERSI_DEBUG="1", **broken)

    assert done.returncode == debugged.returncode == 70
    assert done.stderr.startswith("reversi: internal error: ModuleNotFoundError")
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" in debugged.stderr


def test_validate_judges_hostile_files_without_a_traceback(shell: Shell) -> None:
    files = {
        "nul.yaml": b"- tool: a\x00b\n",
        "latin.yaml": b"- tool: caf\xe9\n",
        "alias.yaml": b"a: &a [x]\nb: [*a, *a]\n",
        "deep.json": b"[" * 100_000,
        "twice.json": b'{"tool": "a", "tool": "b"}',
        "object.yaml": b"!!python/object/apply:os.system ['touch owned']\n",
        "unknown.yaml": b"- {tool: a.b, effect: read_only, permission: p, tiemout_ms: 5}\n",
    }
    for name, content in files.items():
        (shell.folder / name).write_bytes(content)

    for name in files:
        done = shell.run("validate", name)
        assert done.returncode == 1, (name, done)
        assert name in done.stdout
        assert "Traceback" not in done.stderr
    assert shell.names() == sorted(files)


def test_ordinary_output_survives_an_encoding_that_lacks_its_letters(shell: Shell) -> None:
    shell.run("runs", "open", "--id", "r", "--reason", "size 数")

    done = shell.run("runs", "show", "r", PYTHONIOENCODING="latin-1")

    assert done.returncode == 0
    assert "reason: size \\u6570" in done.stdout
