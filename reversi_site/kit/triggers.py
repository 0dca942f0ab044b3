"""Append-only and immutable tables, held by the database itself.

`RefuseChanges` is a migration operation: on both engines it refuses UPDATE and (unless `may_delete`) DELETE; on
SQLite also an INSERT over an existing key, since `INSERT OR REPLACE` deletes without firing a delete trigger; on
PostgreSQL also TRUNCATE. Django rebuilds a SQLite table when it alters one, which drops its triggers: a migration
that alters such a table must apply the operation again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.migrations.operations.base import Operation

_FUNCTION = """
CREATE OR REPLACE FUNCTION reversi_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'integrity_constraint_violation';
END $$
"""


class RefuseChanges(Operation):
    """Refuse changes to `table`; `keys` are its unique keys, each a tuple of columns."""

    reversible = True
    reduces_to_sql = True

    def __init__(self, table: str, keys: Sequence[Sequence[str]], *, may_delete: bool = False) -> None:
        self.table = table
        self.keys = keys
        self.may_delete = may_delete

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """Return what the migration writer needs."""
        return type(self).__name__, [self.table, self.keys], {"may_delete": self.may_delete}

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the model state alone: triggers are not part of it."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Create the triggers."""
        for statement in self._statements(schema_editor.connection.vendor):
            schema_editor.execute(statement, params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Drop the triggers."""
        on_table = f" ON {self.table}" if schema_editor.connection.vendor == "postgresql" else ""
        for name in self._names(schema_editor.connection.vendor):
            schema_editor.execute(f"DROP TRIGGER {self.table}_{name}{on_table}", params=None)

    def describe(self) -> str:
        """Say what the operation does, for `migrate`."""
        return f"Refuse changes to {self.table}"

    def _names(self, vendor: str) -> list[str]:
        removal = [] if self.may_delete else ["no_delete"]
        return ["no_update", *removal, "no_replace" if vendor == "sqlite" else "no_truncate"]

    def _statements(self, vendor: str) -> list[str]:
        return self._sqlite() if vendor == "sqlite" else self._postgresql()

    def _sqlite(self) -> list[str]:
        verbs = ["UPDATE"] if self.may_delete else ["UPDATE", "DELETE"]
        refusals = [
            f"CREATE TRIGGER {self.table}_no_{verb.lower()} BEFORE {verb} ON {self.table} BEGIN"
            f" SELECT RAISE(ABORT, '{self.table} is append-only: {verb} refused'); END"
            for verb in verbs
        ]
        taken = " OR ".join("(" + " AND ".join(f"{c} = NEW.{c}" for c in key) + ")" for key in self.keys)
        replacement = (
            f"CREATE TRIGGER {self.table}_no_replace BEFORE INSERT ON {self.table}"
            f" WHEN EXISTS (SELECT 1 FROM {self.table} WHERE {taken}) BEGIN"
            f" SELECT RAISE(ABORT, '{self.table} is append-only: REPLACE refused'); END"
        )
        return [*refusals, replacement]

    def _postgresql(self) -> list[str]:
        verbs = ["UPDATE"] if self.may_delete else ["UPDATE", "DELETE"]
        refusals = [
            f"CREATE TRIGGER {self.table}_no_{verb.lower()} BEFORE {verb} ON {self.table}"
            " FOR EACH ROW EXECUTE FUNCTION reversi_refuse_change()"
            for verb in verbs
        ]
        truncation = (
            f"CREATE TRIGGER {self.table}_no_truncate BEFORE TRUNCATE ON {self.table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION reversi_refuse_change()"
        )
        return [_FUNCTION, *refusals, truncation]
