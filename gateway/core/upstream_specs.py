"""What it takes to open a session with an upstream: an MCP server behind the gateway (D27).

The name is what a step remembers: an undo goes to the upstream of that name and to no other. An upstream that is given
by flags is named after what it is, so that two servers on one store never share a name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from reversi_sdk.canonical import canonical_bytes

STEM = 40
DIGITS = 6
OF_SESSION = "#"
NO_SERVER_URL = "must begin with http:// or https:// and name a host"
# No other name has the mark: the configuration refuses it, and what is derived has none.
_SESSION = re.compile(rf"{OF_SESSION}[^{OF_SESSION}]*\Z")
_BLANK = re.compile(r"[\s\x00-\x20\x7f]")
_RUNNERS = frozenset({"npx", "node", "bunx", "uvx", "uv", "python", "python3", "pipx", "docker", "env", "sh", "bash"})


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """A server by command or by URL, one of the two. Agents see its tools with `prefix` in front of their names."""

    name: str
    command: tuple[str, ...] | None = None
    env: tuple[tuple[str, str], ...] = ()
    cwd: Path | None = None
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    prefix: str = ""
    is_live: bool = False

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ValueError("an upstream has a command or a url")

    def agent_name(self, tool: str) -> str:
        """Return the name by which agents and manifests know the upstream's tool."""
        return self.prefix + tool

    def own_name(self, tool: str) -> str:
        """Return the upstream's own name of a tool that agents know by another."""
        return tool.removeprefix(self.prefix)

    @property
    def place(self) -> str:
        """Where it is, for messages: never with arguments, headers or credentials."""
        if self.url is not None:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
        return Path(self.command[0]).name if self.command else self.name


def is_server_url(url: str) -> bool:
    """Tell whether a server can be at the URL: it speaks HTTP, and names a host and a port that there can be."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not _BLANK.search(url)
    except ValueError:
        return False


def session_name(upstream: str, session: str) -> str:
    """Return what steps remember a live session by: another session of the same upstream is another place."""
    return f"{upstream}{OF_SESSION}{session}"


def without_session(name: str) -> str:
    """Return the upstream of a name that may be that of a session."""
    return _SESSION.sub("", name)


def derived_name(*, command: Sequence[str] | None = None, cwd: Path | None = None, url: str | None = None) -> str:
    """Return a name for an upstream that was given none: the same for the same server, another for any other."""
    identity = {
        "command": None if command is None else list(command),
        "cwd": None if cwd is None else str(cwd),
        "url": url,
    }
    return _named(_stem(command, url), identity)


def derived_connector_name(connector: str, *, root: Path | None, backup_dir: Path | None) -> str:
    """Return a name for a connector that was given none: of another folder it is another upstream."""
    folders = {"root": root, "backup_dir": backup_dir}
    paths = {key: None if path is None else str(path) for key, path in folders.items()}
    return _named(connector, {"connector": connector, **paths})


def _named(stem: str, identity: Mapping[str, object]) -> str:
    digest = hashlib.sha256(canonical_bytes(dict(identity))).hexdigest()
    return f"{stem}-{digest[:DIGITS]}"


def _stem(command: Sequence[str] | None, url: str | None) -> str:
    if url is not None:
        return _clean(urlsplit(url).hostname or "") or "upstream"
    words = [word for word in command or () if not word.startswith("-")]
    names = [_last_name(word) for word in words]
    return next((name for name in names if name and name not in _RUNNERS), names[0] if names else "") or "upstream"


def _last_name(word: str) -> str:
    parts = [part for part in word.split("/") if part]
    # A script is called after its folder when its own name says nothing.
    while len(parts) > 1 and re.fullmatch(r"(index|main|server|cli|dist|bin|build|src)(\.\w+)?", parts[-1]):
        parts.pop()
    name = parts[-1] if parts else ""
    return _clean(re.sub(r"(?<=.)@[^@]*$|\.(js|mjs|cjs|py|ts|exe|sh)$", "", name))


def _clean(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:STEM]
