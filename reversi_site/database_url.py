"""Django's database settings from `DATABASE_URL`, or for the embedded SQLite store."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from reversi_sdk.errors import InvalidInput

_PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA busy_timeout=20000"


class DatabaseUrlInvalid(InvalidInput):
    """`DATABASE_URL` names no database that Reversi can use."""

    code = "database_url_invalid"


def database_settings(url: str | None, data: Path) -> dict[str, Any]:
    """Return Django's settings for the database; without a URL the SQLite file in the data folder."""
    if not url:
        return sqlite_settings(data / "reversi.sqlite3")
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return sqlite_settings(Path(unquote(parts.path.removeprefix("/")) or "reversi.sqlite3"))
    if parts.scheme in ("postgres", "postgresql"):
        return _postgresql_settings(url)
    raise DatabaseUrlInvalid(f"DATABASE_URL: {parts.scheme or 'no scheme'}: use postgres://user@host:port/name")


def sqlite_settings(path: Path) -> dict[str, Any]:
    """Return settings that several processes can share: WAL, IMMEDIATE writes, FULL sync, foreign keys on."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": _PRAGMAS},
    }


def _postgresql_settings(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise DatabaseUrlInvalid(f"DATABASE_URL: {error}") from error
    name = unquote(parts.path.removeprefix("/"))
    if not name:
        raise DatabaseUrlInvalid("DATABASE_URL: names no database after the host")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)),
    }
