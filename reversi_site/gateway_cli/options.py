"""What the gateway was asked to be, checked as far as options alone can tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from gateway.core.upstream_specs import UpstreamSpec, derived_connector_name
from reversi_site.configuration import ROOTED, ConnectorUpstream
from reversi_site.gateway_cli.upstream_flags import spec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """A gateway as it was asked for; what is None or empty is as the configuration says."""

    manifests: tuple[Path, ...]
    spec: UpstreamSpec | None
    connector: ConnectorUpstream | None
    http: tuple[str, int] | None
    run_id: str | None
    mode: str | None
    scope: tuple[str, ...] | None
    is_operator: bool


def read_options(
    *,
    manifests: tuple[Path, ...],
    upstream_cmd: str | None,
    upstream_args: tuple[str, ...],
    upstream_url: str | None,
    connector: str | None,
    root: Path | None,
    backup_dir: Path | None,
    http: tuple[str, int] | None,
    run_id: str | None,
    mode: str | None,
    scope: tuple[str, ...],
    is_operator: bool,
) -> GatewayOptions:
    """Return the options; raises UsageError for those that contradict each other."""
    local = {
        "--run-id": run_id is not None,
        "--mode": mode is not None,
        "--scope": bool(scope),
        "--operator": is_operator,
    }
    given = [name for name, is_given in local.items() if is_given]
    if http is not None and given:
        raise click.UsageError(f"{given[0]} does not go with --http: there each client's API key decides")
    return GatewayOptions(
        manifests=tuple(path.absolute() for path in manifests),
        spec=spec_of(upstream_cmd, upstream_args, upstream_url),
        connector=_connector(connector, root, backup_dir),
        http=http,
        run_id=run_id,
        mode=mode,
        scope=scope or None,
        is_operator=is_operator,
    )


def _connector(name: str | None, root: Path | None, backup_dir: Path | None) -> ConnectorUpstream | None:
    if name is None:
        if root is not None or backup_dir is not None:
            raise click.UsageError("--root and --backup-dir belong to --connector")
        return None
    if name in ROOTED and root is None:
        raise click.UsageError(f"--connector {name} needs --root, the one folder that it may touch")
    folder = None if root is None else root.absolute()
    backups = None if backup_dir is None else backup_dir.absolute()
    own_name = derived_connector_name(name, root=folder, backup_dir=backups)
    return ConnectorUpstream(name=own_name, connector=name, root=folder, backup_dir=backups)
