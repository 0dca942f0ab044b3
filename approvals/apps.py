"""Registers approvals with Django: the gate."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """approvals."""

    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"
