"""Refuse to connect, and say what the test forgot; SQL may still be built, as for SQLite."""

from __future__ import annotations

from typing import NoReturn

from django.db.backends.sqlite3 import base


class NoDatabase(AssertionError):
    """A test touched the database without a fixture that gives it one."""


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that never comes about."""

    def connect(self) -> NoReturn:
        """Fail the test."""
        raise NoDatabase("this test has no database: ask for the fixture db, sqlite_db or postgres_db")
