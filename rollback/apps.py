"""Registers rollback with Django: plans and rollbacks."""

from django.apps import AppConfig


class RollbackConfig(AppConfig):
    """rollback."""

    name = "rollback"
    default_auto_field = "django.db.models.BigAutoField"
