"""Setting a gateway up for a server: which files stand afterwards, and that nothing is lost when it cannot be done."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from connectors.catalog import connector_spec
from manifests_registry.core.validation import load_path, validate_path
from reversi_sdk.strict_yaml import load_yaml
from reversi_site.configuration import load_configuration
from reversi_site.gateway_cli import main
from tests.gateway.mcp.servers.starting import http_server
from tests.postgres import REPOSITORY
from tests.reversi_site.conftest import Answer

SERVER = REPOSITORY / "tests" / "reversi_site" / "listing_server.py"
SCHEMA = {"type": "object"}
HINTS = {"readOnlyHint": True}
NOTES = [
    {"name": "read_note", "inputSchema": SCHEMA, "annotations": HINTS},
    {"name": "write_note", "inputSchema": SCHEMA, "description": "Write\n- tool: a note"},
]

Setup = Callable[..., Answer]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Setup:
    """Run `reversi-gateway init` in an empty folder, with nothing of the caller's settings."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("REVERSI_DATA", raising=False)

    def run_init(*options: str) -> Answer:
        capsys.readouterr()
        code = main(["init", *options])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run_init


def command(tmp_path: Path, tools: object, *more: str) -> list[str]:
    """The options that name a server which lists these tools."""
    listed = tmp_path / "tools.json"
    listed.write_text(json.dumps(tools))
    words = [str(SERVER), str(listed), *more]
    return ["--upstream-cmd", sys.executable, *(part for word in words for part in ("--upstream-arg", word))]


def tree(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}


def configuration(folder: Path) -> dict[str, Any]:
    path = folder / "reversi.config.yaml"
    value: dict[str, Any] = load_yaml(path.read_bytes(), name="config").value
    return value


def drafted(folder: Path) -> dict[str, tuple[str, str]]:
    entries = load_path(folder / "manifests").entries
    return {entry.manifest.tool: (entry.normalized["effect"], entry.normalized["status"]) for entry in entries}


def test_init_writes_what_a_gateway_needs(setup: Setup, tmp_path: Path) -> None:
    done = setup(*command(tmp_path, NOTES))

    here = tmp_path / "here"
    assert (done.code, done.err) == (0, "")
    assert list(tree(here)) == ["manifests/listing_server.yaml", "reversi.config.yaml"]
    assert drafted(here) == {"read_note": ("read_only", "draft"), "write_note": ("irreversible", "draft")}
    assert validate_path(here / "manifests").problems == ()
    (upstream,) = configuration(here)["upstreams"]
    assert upstream.pop("name").startswith("listing_server-")
    assert upstream == {"cmd": sys.executable, "args": [str(SERVER), str(tmp_path / "tools.json")], "cwd": "."}
    assert configuration(here)["manifests"] == "manifests"
    read = load_configuration({}, here)
    assert [(server.command, server.cwd) for server in read.servers] == [
        ((sys.executable, str(SERVER), str(tmp_path / "tools.json")), here)
    ]
    assert read.manifests == (here / "manifests",)


def test_init_says_what_comes_next(setup: Setup, tmp_path: Path) -> None:
    done = setup(*command(tmp_path, NOTES))

    here = tmp_path / "here"
    assert done.lines[:3] == [
        "wrote reversi.config.yaml",
        "wrote manifests/listing_server.yaml",
        "drafted 2 tools: 1 read_only on the server's word, 1 irreversible, 0 of them with a proposed undo",
    ]
    assert "(the manifest for <tool> is a draft)" in done.out
    assert "--mode observe" in done.out
    assert "set status: approved" in done.out
    (start,) = (line.partition("Start the gateway: ")[2] for line in done.lines if "Start the gateway" in line)
    arguments = ["--config", str(here / "reversi.config.yaml"), "--data", str(here / "reversi-data")]
    assert shlex.split(start) == ["reversi-gateway", *arguments]
    (undo,) = (line.partition("done through it: ")[2] for line in done.lines if "Take back" in line)
    assert shlex.split(undo) == ["reversi", *arguments, "rollback", "--last"]
    client = json.loads(done.out[done.out.index("{\n") :])
    assert client["mcpServers"]["listing_server"]["args"] == arguments


def test_init_as_one_document(setup: Setup, tmp_path: Path) -> None:
    done = setup(*command(tmp_path, [*NOTES, {"name": "two words", "inputSchema": SCHEMA}]), "--json")

    document = done.document
    here = tmp_path / "here"
    assert document["files"] == [str(here / "reversi.config.yaml"), str(here / "manifests" / "listing_server.yaml")]
    assert [(draft["tool"], draft["effect"]) for draft in document["drafts"]] == [
        ("read_note", "read_only"),
        ("write_note", "irreversible"),
    ]
    assert [left["tool"] for left in document["left_out"]] == ["two words"]
    assert document["upstream"] == configuration(here)["upstreams"][0]["name"]
    assert document["command"][0] == "reversi-gateway"
    assert document["client"]["mcpServers"]["listing_server"]["args"] == document["command"][1:]


def test_init_takes_the_data_folder_of_this_shell(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERSI_DATA", str(tmp_path / "data"))

    document = setup(*command(tmp_path, NOTES), "--json").document

    assert document["command"][-2:] == ["--data", str(tmp_path / "data")]


def test_init_asks_for_every_page(setup: Setup, tmp_path: Path) -> None:
    tools = [{"name": f"tool_{number}", "inputSchema": SCHEMA} for number in range(500)]

    done = setup(*command(tmp_path, tools, "7"))

    assert done.code == 0
    assert list(drafted(tmp_path / "here")) == [tool["name"] for tool in tools]


def test_init_drafts_a_tool_once_that_is_listed_twice(setup: Setup, tmp_path: Path) -> None:
    done = setup(*command(tmp_path, [*NOTES, NOTES[0]]))

    assert done.code == 0
    assert list(drafted(tmp_path / "here")) == ["read_note", "write_note"]


@pytest.mark.parametrize("output", ["gateway", "a/b"])
def test_init_writes_elsewhere_with_paths_from_there(setup: Setup, tmp_path: Path, output: str) -> None:
    (tmp_path / "here" / "work").mkdir()

    setup(*command(tmp_path, NOTES), "--connector", "fs", "--root", "work", "-o", output)

    folder = tmp_path / "here" / output
    server, connector = configuration(folder)["upstreams"]
    assert (folder / server["cwd"]).resolve() == tmp_path / "here"
    assert (folder / connector["root"]).resolve() == tmp_path / "here" / "work"
    assert not Path(server["cwd"]).is_absolute()


def test_init_outside_of_where_it_is_called_names_whole_paths(setup: Setup, tmp_path: Path) -> None:
    setup(*command(tmp_path, NOTES), "-o", str(tmp_path / "there"))

    assert configuration(tmp_path / "there")["upstreams"][0]["cwd"] == str(tmp_path / "here")


def test_init_with_a_connector_adds_its_manifests(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "here" / "work").mkdir()

    done = setup(
        *command(tmp_path, [*NOTES, {"name": "fs.stat", "inputSchema": SCHEMA}]), "--connector", "fs", "--root", "work"
    )

    here = tmp_path / "here"
    assert done.code == 0
    assert configuration(here)["upstreams"][1] == {"name": "fs", "connector": "fs", "root": "work"}
    own = {name: ("draft" if name in ("read_note", "write_note") else "approved") for name in drafted(here)}
    assert {name: status for name, (_, status) in drafted(here).items()} == own
    assert connector_spec("fs").tools.keys() < drafted(here).keys()
    assert 'left out "fs.stat": has a manifest already' in done.lines


def test_init_for_a_connector_alone(setup: Setup, tmp_path: Path) -> None:
    done = setup("--connector", "fs", "--root", ".")

    here = tmp_path / "here"
    assert done.code == 0
    assert list(tree(here)) == ["manifests/connector-fs.yaml", "reversi.config.yaml"]
    assert "draft" not in done.out


def test_init_for_a_server_by_url(setup: Setup, tmp_path: Path) -> None:
    with http_server() as url:
        done = setup("--upstream-url", url)

    assert done.code == 0
    (server,) = load_configuration({}, tmp_path / "here").servers
    assert (server.url, server.command) == (url, None)
    assert "echo" in drafted(tmp_path / "here")


def test_init_for_a_connector_that_is_served(setup: Setup, tmp_path: Path) -> None:
    words = ["-m", "connectors", "serve", "fs"]
    arguments = [part for word in words for part in ("--upstream-arg", word)]

    done = setup("--upstream-cmd", sys.executable, *arguments)

    assert done.code == 0
    read = {tool.name for tool in connector_spec("fs").rows if tool.is_reading}
    assert {name for name, (effect, _) in drafted(tmp_path / "here").items() if effect == "read_only"} == read


ODD = 'a "quoted": # word, \\ and ünï\u202e\x1b\n- x: [y'


def test_init_writes_odd_arguments_as_they_are(setup: Setup, tmp_path: Path) -> None:
    words = [ODD, "yes", "", "1e3", " padded "]

    done = setup(*command(tmp_path, NOTES, "5", str(tmp_path / "marker"), *words))

    assert done.code == 0
    (server,) = load_configuration({}, tmp_path / "here").servers
    assert server.command is not None
    assert list(server.command[-5:]) == words


def test_init_overwrites_nothing(setup: Setup, tmp_path: Path) -> None:
    setup(*command(tmp_path, NOTES))
    before = tree(tmp_path / "here")
    marker = tmp_path / "started"

    again = setup(*command(tmp_path, NOTES[:1], "5", str(marker)))

    assert (again.code, again.out) == (1, "")
    assert "reversi.config.yaml would be overwritten; --force does that" in again.err
    assert tree(tmp_path / "here") == before
    assert not marker.exists()


def test_init_does_not_overwrite_manifests_either(setup: Setup, tmp_path: Path) -> None:
    manifests = tmp_path / "here" / "manifests"
    manifests.mkdir()
    (manifests / "listing_server.yaml").write_text("mine")

    done = setup(*command(tmp_path, NOTES))

    assert (done.code, "listing_server.yaml would be overwritten" in done.err) == (1, True)
    assert tree(tmp_path / "here") == {"manifests/listing_server.yaml": "mine"}


def test_init_overwrites_when_it_is_told_to(setup: Setup, tmp_path: Path) -> None:
    setup(*command(tmp_path, NOTES))

    again = setup(*command(tmp_path, NOTES[:1]), "--force")

    assert again.code == 0
    assert list(drafted(tmp_path / "here")) == ["read_note"]


def test_init_says_what_is_wrong_with_manifests_that_stood_there(setup: Setup, tmp_path: Path) -> None:
    manifests = tmp_path / "here" / "manifests"
    manifests.mkdir()
    (manifests / "mine.yaml").write_text("tool: read_note\neffect: read_only\npermission: notes:read\n")

    done = setup(*command(tmp_path, NOTES))

    assert done.code == 1
    assert "read_note" in done.err


@pytest.mark.parametrize(
    ("server", "code", "words"),
    [
        (["no-such-command"], 69, "the tools of no-such-command cannot be listed: it cannot be started"),
        ([sys.executable, "-c", "import sys; sys.exit('no key')"], 69, "no key"),
        ([sys.executable, "-c", "print('hello')"], 69, "cannot be listed"),
    ],
)
def test_init_for_a_server_that_does_not_work(
    setup: Setup, tmp_path: Path, server: Sequence[str], code: int, words: str
) -> None:
    arguments = [part for word in server[1:] for part in ("--upstream-arg", word)]

    done = setup("--upstream-cmd", server[0], *arguments)

    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "Traceback" not in done.err
    assert tree(tmp_path / "here") == {}


@pytest.mark.parametrize(
    ("tools", "code", "words"),
    [
        ([], 1, "offers no tool that a manifest can be written for"),
        ([{"name": "two words", "inputSchema": SCHEMA}], 1, "'two words' no manifest can have this name"),
        (None, 69, "no method tools/list"),
    ],
)
def test_init_for_a_server_without_tools(setup: Setup, tmp_path: Path, tools: object, code: int, words: str) -> None:
    done = setup(*command(tmp_path, tools))

    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert tree(tmp_path / "here") == {}


def test_init_where_nothing_can_be_written(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "here" / "taken").write_text("")

    done = setup(*command(tmp_path, NOTES), "-o", "taken/below")

    assert (done.code, "cannot be written" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give --upstream-cmd or --upstream-url"),
        (["--upstream-arg", "x"], "--upstream-arg belongs to --upstream-cmd"),
        (["--upstream-cmd", "x", "--upstream-url", "http://127.0.0.1"], "exclude each other"),
        (["--upstream-cmd", " "], "must not be empty"),
        (["--upstream-url", "ftp://127.0.0.1"], "must begin with http"),
        (["--connector", "fs"], "--connector fs needs --root"),
        (["--upstream-cmd", "x", "--root", "."], "--root belongs to --connector"),
        (["--connector", "fs", "--root", "missing"], "missing"),
    ],
)
def test_init_refuses_wrong_usage(setup: Setup, tmp_path: Path, options: Sequence[str], words: str) -> None:
    done = setup(*options)

    assert (done.code, done.out) == (64, "")
    assert words in done.err
    assert tree(tmp_path / "here") == {}


def test_init_for_a_connector_that_does_not_exist(setup: Setup) -> None:
    done = setup("--connector", "ftp", "--root", ".")

    assert (done.code, "no connector is named ftp" in done.err) == (1, True)


def test_init_help_shows_examples(setup: Setup) -> None:
    assert "Examples:" in setup("--help").out
