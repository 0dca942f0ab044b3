"""Hold manifest documents immutable: what a step ran under can never be changed or removed."""

from django.db import migrations

from reversi_site.kit.triggers import RefuseChanges


class Migration(migrations.Migration):
    """Immutable manifest documents."""

    dependencies = [("manifests_registry", "0001_initial")]

    operations = [RefuseChanges("manifests_registry_manifestdocument", (("checksum",),))]
