"""Builds connectors from what a deployment gives: a root, and the environment for credentials.

Credentials come from the environment alone. A connector whose credential is absent is not enabled; `fs` needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from connectors.catalog import connector_names, connector_spec
from connectors.core.connector import Connector


def build_connector(
    name: str, *, root: Path | None = None, backup_dir: Path | None = None, environ: Mapping[str, str]
) -> Connector:
    """Build the connector `name`; raises `NotFound` for an unknown name, `InvalidInput` for unusable settings.

    `root` (default: the working directory) and `backup_dir` are for `fs`.
    """
    # The file system needs no credential; `environ` is where the others will find theirs.
    del environ
    connector_spec(name)
    from connectors.catalog import fs

    return fs.build(root or Path(), backup_dir)


def enabled_connectors(
    *, root: Path | None = None, backup_dir: Path | None = None, environ: Mapping[str, str]
) -> tuple[Connector, ...]:
    """Build every connector that can be used with what `environ` holds."""
    return tuple(build_connector(name, root=root, backup_dir=backup_dir, environ=environ) for name in connector_names())
