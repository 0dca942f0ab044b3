"""Registers gateway with Django: the one way in which calls are made."""

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    """gateway."""

    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"
