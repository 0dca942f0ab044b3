"""Which tools this deployment reaches, for views: what a plan says nobody runs, and what reads a state back."""

from __future__ import annotations

from django.conf import settings
from django.utils.module_loading import import_string

from rollback.core.plan import CanRun
from rollback.core.ports import Tools


def configured_tools() -> Tools:
    """Return the tools that the deployment is wired to."""
    tools: Tools = import_string(settings.REVERSI_TOOLS)()
    return tools


def configured_can_run() -> CanRun | None:
    """Return what tells whether an undo can be run; None where nothing is configured that could run any.

    Without executors remote workers run the undos, and nobody here knows which.
    """
    tools = configured_tools()
    return tools.can_run if tools.is_reaching else None
