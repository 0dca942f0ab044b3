"""What an upstream is, and how one that was given no name is called."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.upstream_specs import (
    UpstreamSpec,
    derived_connector_name,
    derived_name,
    is_server_url,
    session_name,
    without_session,
)


@pytest.mark.parametrize("fields", [{}, {"command": ("a",), "url": "http://127.0.0.1/mcp"}])
def test_an_upstream_has_a_command_or_a_url(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a command or a url"):
        UpstreamSpec("u", **fields)


SERVER_URLS = {
    "http://127.0.0.1:8001/mcp": True,
    "https://crm.example.org/mcp?tenant=7": True,
    "http://[::1]:8001/mcp": True,
    "HTTPS://EXAMPLE.ORG": True,
    "server": False,
    "ftp://127.0.0.1": False,
    "http://": False,
    "https:///mcp": False,
    "http://127.0.0.1:99999/mcp": False,
    "http://127.0.0.1:0/mcp": False,
    "http://127.0.0.1:x/mcp": False,
    "http://[::1/mcp": False,
    "http://a b/mcp": False,
    "http://a/\nmcp": False,
}


@pytest.mark.parametrize("url", SERVER_URLS)
def test_a_url_can_be_a_servers(url: str) -> None:
    assert is_server_url(url) is SERVER_URLS[url]


@given(st.text(max_size=5), st.text(max_size=8))
def test_own_name_undoes_agent_name(prefix: str, tool: str) -> None:
    spec = UpstreamSpec("u", command=("a",), prefix=prefix)

    assert spec.own_name(spec.agent_name(tool)) == tool


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"command": ("/opt/bin/server", "--token", "secret")}, "server"),
        ({"url": "https://user:pw@example.org:8443/mcp?key=secret"}, "https://example.org:8443/mcp"),
        ({"url": "http://127.0.0.1/mcp"}, "http://127.0.0.1/mcp"),
    ],
)
def test_the_place_names_no_secret(fields: dict[str, Any], place: str) -> None:
    assert UpstreamSpec("u", **fields).place == place


@pytest.mark.parametrize(
    ("fields", "stem"),
    [
        ({"command": ("npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv")}, "server-filesystem"),
        ({"command": ("npx", "-y", "server-memory@1.2.3")}, "server-memory"),
        ({"command": ("node", "/x/server-filesystem/dist/index.js", "/srv")}, "server-filesystem"),
        ({"command": ("python", "-m", "my.server")}, "my-server"),
        ({"command": ("uvx", "mcp-server-git")}, "mcp-server-git"),
        ({"command": ("/usr/local/bin/thing.exe",)}, "thing"),
        ({"command": ("python3",)}, "python3"),
        ({"command": ("npx", "a" * 100)}, "a" * 40),
        ({"url": "https://mcp.example.org/v1"}, "mcp-example-org"),
        ({"url": "http://127.0.0.1:8000/mcp"}, "127-0-0-1"),
    ],
)
def test_a_derived_name_begins_with_what_the_server_is(fields: dict[str, Any], stem: str) -> None:
    name, _, digest = derived_name(**fields).rpartition("-")

    assert name == stem
    assert len(digest) == 6
    assert set(digest) <= set("0123456789abcdef")


def test_a_connector_of_another_folder_has_another_name() -> None:
    folders: list[dict[str, Path | None]] = [
        {"root": Path("/a"), "backup_dir": None},
        {"root": Path("/b"), "backup_dir": None},
        {"root": Path("/a"), "backup_dir": Path("/b")},
        {"root": None, "backup_dir": None},
    ]

    names = [derived_connector_name("fs", **each) for each in folders]

    assert len(set(names)) == len(names)
    assert names == [derived_connector_name("fs", **each) for each in folders]
    assert all(name.startswith("fs-") for name in names)


def test_a_session_has_the_name_of_its_upstream() -> None:
    name = session_name("browser", "3fa2")

    assert name == "browser#3fa2"
    assert (without_session(name), without_session("browser")) == ("browser", "browser")


def test_a_derived_name_is_the_same_only_for_the_same_server() -> None:
    servers: list[dict[str, Any]] = [
        {"command": ("server", "/a")},
        {"command": ("server", "/b")},
        {"command": ("server /a",)},
        {"command": ("server", "/a"), "cwd": Path("/srv")},
        {"url": "http://127.0.0.1/a"},
        {"url": "http://127.0.0.1/b"},
    ]

    names = [derived_name(**server) for server in servers]

    assert len(set(names)) == len(names)
    assert names == [derived_name(**server) for server in servers]
