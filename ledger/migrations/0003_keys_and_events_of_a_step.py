"""Let a disputed failed call hold its call key, and give the questions about one step indexes of their own."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Exists, OuterRef, Q

STANDING = ["compensating", "compensation_failed", "intended", "succeeded", "uncertain"]
DISPUTED = Q(state="failed", is_disputed=True)


def unindexed(related_name):
    """Return the reference to the run without an index over it alone."""
    return models.ForeignKey(
        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name=related_name, to="ledger.run"
    )


def leave_keys_to_their_holders(apps, schema_editor):
    """Take the call key from disputed failed calls where another call holds it by now."""
    steps = apps.get_model("ledger", "Step").objects.exclude(call_key=None)
    same_key = steps.filter(call_key=OuterRef("call_key")).exclude(pk=OuterRef("pk"))
    held = Exists(same_key.filter(Q(state__in=STANDING) | (DISPUTED & Q(pk__lt=OuterRef("pk")))))
    losing = list(steps.filter(DISPUTED).filter(held).values_list("pk", flat=True))
    for pk in losing:
        steps.filter(pk=pk).update(call_key=None)


def drop_run_indexes(apps, schema_editor):
    """Drop the indexes over the run alone; to alter the columns would rebuild the tables without their triggers."""
    introspection, editor = schema_editor.connection.introspection, schema_editor
    for table in ("ledger_step", "ledger_event"):
        with editor.connection.cursor() as cursor:
            found = introspection.get_constraints(cursor, table)
        for name, each in found.items():
            if each["index"] and not each["unique"] and each["columns"] == ["run_id"]:
                editor.execute(f"DROP INDEX {editor.quote_name(name)}")


def create_run_indexes(apps, schema_editor):
    """Create them again."""
    for model in ("Step", "Event"):
        found = apps.get_model("ledger", model)
        for statement in schema_editor._field_indexes_sql(found, found._meta.get_field("run")):
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    """The partial constraint on call keys, and indexes."""

    dependencies = [("ledger", "0002_append_only")]

    operations = [
        migrations.RunPython(leave_keys_to_their_holders, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="step", name="step_call_key_stands_once"),
        migrations.RemoveIndex(model_name="step", name="step_run_tool"),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(drop_run_indexes, create_run_indexes)],
            state_operations=[
                migrations.AlterField("step", "run", unindexed("steps")),
                migrations.AlterField("event", "run", unindexed("events")),
            ],
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["run", "step", "seq"], name="event_run_step_seq"),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(fields=["tool", "run", "number"], name="step_tool_run_number"),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(fields=["call_key"], name="step_call_key"),
        ),
        migrations.AddConstraint(
            model_name="step",
            constraint=models.UniqueConstraint(
                condition=Q(("call_key__isnull", False), Q(("state__in", STANDING), DISPUTED, _connector="OR")),
                fields=("call_key",),
                name="step_call_key_stands_once",
            ),
        ),
    ]
