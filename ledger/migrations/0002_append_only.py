"""Hold append-only tables by triggers, and create the governance log's one head."""

from django.db import migrations

from reversi_site.kit.triggers import RefuseChanges


def create_head(apps, schema_editor):
    """Start the governance log's chain."""
    apps.get_model("ledger", "GovernanceHead").objects.create(id=1, next_seq=0, head="0" * 64)


class Migration(migrations.Migration):
    """Append-only journal, purgeable data."""

    dependencies = [("ledger", "0001_initial")]

    operations = [
        RefuseChanges("ledger_event", (("id",), ("run_id", "seq"))),
        RefuseChanges("ledger_eventdata", (("event_id",),), may_delete=True),
        RefuseChanges("ledger_governanceevent", (("seq",),)),
        migrations.RunPython(create_head, migrations.RunPython.noop),
    ]
