"""Where the server is and how the client says who it is."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from reversi_sdk.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Address:
    """A server and the key to it; the key is in no text form of this value."""

    url: str
    api_key: str

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request to this server."""
        return {"Authorization": f"Bearer {self.api_key}", "User-Agent": "reversi-python"}

    def url_of(self, path: str) -> str:
        """Return the whole address of a path."""
        return f"{self.url}{path}"


def address_of(url: str, api_key: str | None) -> Address:
    """Return the address; a key that is not given comes from `REVERSI_API_KEY`. Raises InvalidInput."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInput(f"the server's address must be like http://127.0.0.1:8000, not {url!r}")
    if parts.username or parts.password:
        raise InvalidInput("the server's address must hold no user and no password: pass api_key")
    key = api_key or os.environ.get("REVERSI_API_KEY") or ""
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise InvalidInput("api_key: pass a key (rk_…) or set REVERSI_API_KEY")
    return Address(url.rstrip("/"), key)


def worker_name() -> str:
    """Return how this process is named as the worker of a rollback that it makes."""
    return f"{socket.gethostname()}:{os.getpid()}"
