"""Where the demonstration takes place: a folder of its own with sandbox, backups, books, manifests and store.

The environment of this process, and so of the worker it starts, is pointed at that folder before Django is set up:
nothing that the caller configured is used or touched.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from connectors.core.connector import Connector
from connectors.core.tool import CallContext
from connectors.settings import build_connector
from reversi_site.configuration import FILE_NAME
from reversi_site.demo import tools, tree
from reversi_site.secret_files import DataFolderUnusable, prepare_folder

KEPT = frozenset({"REVERSI_DEBUG", "REVERSI_LOG_LEVEL"})


@dataclass(frozen=True, slots=True)
class Stage:
    """The folder, and the tools that act in it."""

    folder: Path
    files: Connector
    desk: Connector

    @property
    def sandbox(self) -> Path:
        """The tree that the agent works in."""
        return self.folder / "sandbox"

    @property
    def store(self) -> Path:
        """The data folder of the demonstration."""
        return self.folder / "store"

    @property
    def books(self) -> tools.Desk:
        """What a person sees who looks at the services directly."""
        return tools.Desk(self.folder / "books")

    def run_tool(self, tool: str, args: Mapping[str, Any], key: str | None) -> Any:
        """Run a tool for real."""
        connector = self.files if tool in self.files.tools else self.desk
        return connector.call(tool, args, CallContext(idempotency_key=key))


def set_stage(parent: Path, *, now: datetime) -> Stage:
    """Make a fresh folder under `parent` with a tree, services and a configuration in it."""
    # By itself, because `parents=True` gives the mode to the last folder only, and this one will hold the keys.
    prepare_folder(parent)
    folder = parent.resolve() / f"demo-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    try:
        return _set(folder)
    except OSError as error:
        raise DataFolderUnusable(folder, error.strerror or str(error)) from error


def _set(folder: Path) -> Stage:
    prepare_folder(folder)
    sandbox, backups = folder / "sandbox", folder / "backups"
    sandbox.mkdir()
    tree.plant(sandbox)
    files = build_connector("fs", root=sandbox, backup_dir=backups, environ={})
    stage = Stage(folder, files, tools.build(folder / "books"))
    manifests = [*files.manifests(), *stage.desk.manifests()]
    (folder / "manifests.json").write_text(json.dumps(manifests, indent=2), encoding="utf-8")
    upstream = {"name": "fs", "connector": "fs", "root": "sandbox", "backup_dir": "backups"}
    # JSON is YAML: what is written here is what a person would write by hand.
    configuration = json.dumps({"manifests": "manifests.json", "upstreams": [upstream]}, indent=2)
    (folder / FILE_NAME).write_text(configuration + "\n", encoding="utf-8")
    return stage


def enter(stage: Stage, environ: MutableMapping[str, str] | None = None, *, keeps_database: bool = False) -> None:
    """Point the environment at the stage; the caller's database is used only when that is asked for."""
    variables = os.environ if environ is None else environ
    for name in [name for name in variables if name.startswith("REVERSI_") and name not in KEPT]:
        del variables[name]
    if not keeps_database:
        variables.pop("DATABASE_URL", None)
    variables["REVERSI_DATA"] = str(stage.store)
    variables["REVERSI_CONFIG"] = str(stage.folder / FILE_NAME)
