"""Open the store: set Django up, then make sure that the database can be trusted and has this version's tables.

The embedded SQLite store is created and migrated on first use, under a file lock, since two processes may be first
at once. So is an empty PostgreSQL database; one that holds anything is never changed in passing: pending migrations are
named with the command that applies them. A store written by a newer version is refused, never guessed at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reversi_sdk.errors import Conflict, Unavailable
from reversi_site.file_locks import locked
from reversi_site.file_systems import network_file_system
from reversi_site.secret_files import prepare_folder

if TYPE_CHECKING:
    from django.db.migrations.executor import MigrationExecutor

SETTINGS = "reversi_site.settings"
OURS = ("ledger", "manifests_registry", "approvals", "rollback", "reversi_site")
# Any number will do, as long as every process that migrates asks for the same one.
_MIGRATION_LOCK = 0x52455645


class StoreUnavailable(Unavailable):
    """The store cannot be used as it is."""

    code = "store_unavailable"


class StoreNotMigrated(Unavailable):
    """A shared database lacks tables of this version."""

    code = "store_not_migrated"

    def __init__(self, pending: Sequence[str]) -> None:
        super().__init__(f"the database lacks {len(pending)} migrations of this version: run `reversi migrate` once")
        self.pending = pending


class StoreTooNew(Conflict):
    """The store was written by a later version."""

    code = "store_too_new"

    def __init__(self, unknown: Sequence[str]) -> None:
        super().__init__(f"the store was made by a later version of Reversi ({', '.join(unknown)}): update this one")
        self.unknown = unknown


def set_up() -> None:
    """Set Django up; reads the settings, which creates the data folder and its keys when they are missing.

    Raises StoreUnavailable when the database's driver is not installed.
    """
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    from django.conf import settings

    # Before the models are loaded, which already asks for the driver.
    _require_driver(settings.DATABASES["default"])
    django.setup()


def open_store() -> None:
    """Make the store ready for use.

    Raises StoreUnavailable, StoreNotMigrated (PostgreSQL only), StoreTooNew, DataFolderUnusable, and what the
    settings raise for a malformed configuration.
    """
    set_up()
    from django.db import connection

    if connection.vendor != "sqlite":
        _require_migrated()
        return
    _require_local_file(Path(connection.settings_dict["NAME"]))
    with locked(Path(connection.settings_dict["NAME"])):
        _migrate()


def _require_migrated() -> None:
    """Raise StoreNotMigrated for a shared database that lacks tables; an empty one is set up, as on first use."""
    from django.db import ProgrammingError, connection

    pending = pending_migrations()
    if not pending:
        return
    try:
        # Somebody may be at it: what is there afterwards counts.
        with _database_lock():
            pending = pending_migrations()
            if pending and connection.introspection.table_names():
                raise StoreNotMigrated(pending)
            _migrate()
    except ProgrammingError as error:
        # A role that may not make tables: whoever may must do it.
        raise StoreNotMigrated(pending) from error


def migrate_store() -> Sequence[str]:
    """Apply what is missing and return its names; several processes may ask at once."""
    set_up()
    from django.db import connection

    if connection.vendor == "sqlite":
        _require_local_file(Path(connection.settings_dict["NAME"]))
        with locked(Path(connection.settings_dict["NAME"])):
            return _migrate()
    with _database_lock():
        return _migrate()


def pending_migrations() -> Sequence[str]:
    """Return the names of the migrations that the database lacks; raises StoreTooNew when it has more than we know."""
    executor = _executor()
    known = executor.loader.disk_migrations.keys()
    unknown = [f"{app}.{name}" for app, name in executor.loader.applied_migrations if app in OURS]
    unknown = sorted(set(unknown) - {f"{app}.{name}" for app, name in known})
    if unknown:
        raise StoreTooNew(unknown)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def _executor() -> MigrationExecutor:
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    return MigrationExecutor(connection)


def _migrate() -> Sequence[str]:
    from django.core.management import call_command

    pending = pending_migrations()
    if pending:
        call_command("migrate", verbosity=0, interactive=False)
    return pending


@contextmanager
def _database_lock() -> Iterator[None]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_MIGRATION_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_MIGRATION_LOCK])


def _require_driver(settings: dict[str, Any]) -> None:
    if not settings["ENGINE"].endswith("postgresql"):
        return
    try:
        import psycopg  # noqa: F401  # only whether it can be had
    except ImportError as error:
        raise StoreUnavailable(
            "DATABASE_URL names a PostgreSQL database, but its driver is not installed: install reversi[postgres]"
        ) from error


def _require_local_file(path: Path) -> None:
    prepare_folder(path.parent)
    kind = network_file_system(path.parent)
    if kind is not None:
        raise StoreUnavailable(
            f"{path.parent} is on a network file system ({kind}), where SQLite loses data: "
            "use a local folder (--data) or PostgreSQL (DATABASE_URL)"
        )
    if path.is_dir():
        raise StoreUnavailable(f"{path} is a folder where the store's file must be")
