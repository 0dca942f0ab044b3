"""Registers the console as Django's admin, on a site of our own.

Admin modules are discovered where the URLs are built: commands that serve no page do not load them.
"""

from django.contrib.admin.apps import SimpleAdminConfig


class ConsoleConfig(SimpleAdminConfig):
    """The admin with the operators' site as its default site."""

    default_site = "reversi_site.console.site.ConsoleSite"
