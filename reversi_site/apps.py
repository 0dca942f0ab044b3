"""Registers the composition root with Django: schedules and heartbeats."""

from django.apps import AppConfig


class ReversiSiteConfig(AppConfig):
    """The composition root."""

    name = "reversi_site"
    default_auto_field = "django.db.models.BigAutoField"
