"""Which tools the workers of this deployment reach: what plans say can run, and what reads back by-hand undos."""

from __future__ import annotations

from django.conf import settings
from django.utils.module_loading import import_string

from rollback.core.ports import Tools


def deployment_tools() -> Tools:
    """Return the tools that a worker with this configuration reaches."""
    tools: Tools = import_string(settings.REVERSI_TOOLS)()
    return tools
