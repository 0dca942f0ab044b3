"""Registers the journal with Django."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """The journal."""

    name = "ledger"
    default_auto_field = "django.db.models.BigAutoField"
