"""Registers manifests_registry with Django: what each tool means."""

from django.apps import AppConfig


class ManifestsRegistryConfig(AppConfig):
    """manifests_registry."""

    name = "manifests_registry"
    default_auto_field = "django.db.models.BigAutoField"
