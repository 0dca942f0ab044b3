from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("rollback", "0003_waiting_for_a_gateway"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="attempt", name="attempt_outcome_has_time"),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.CheckConstraint(
                condition=Q(outcome__isnull=True, answered_at__isnull=True)
                | Q(outcome__in=["failed", "not_run", "succeeded", "unknown"], answered_at__isnull=False),
                name="attempt_outcome_has_time",
            ),
        ),
    ]
