"""Connectors: tools that act on real systems, each with a manifest and an undo that is a tool of the same connector.

Usable alone, without a server or a database. What is named here is the public surface; everything is imported lazily.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connectors.compensator import Compensator
    from connectors.core.connector import Connector, ConnectorSpec
    from connectors.core.schema_drift import ManifestDrift

__all__ = [
    "all_connectors",
    "check_catalog",
    "compensator_for",
    "connector_schema_hashes",
    "detect_manifest_drift",
    "tool_table",
]


def all_connectors(config: Mapping[str, Mapping[str, Any]]) -> tuple[Connector, ...]:
    """Build the connectors named in `config`, such as `{"fs": {"root": "./work"}}`, in its order.

    Raises `NotFound` for a connector that does not exist, `InvalidInput` for an option that it does not take.
    """
    return tuple(_configured(name, options) for name, options in config.items())


def _configured(name: str, options: Mapping[str, Any]) -> Connector:
    from connectors.catalog import connector_spec
    from connectors.settings import build_connector
    from reversi_sdk.errors import InvalidInput

    connector_spec(name)
    for option, value in options.items():
        if option not in ("root", "backup_dir"):
            raise InvalidInput(f"connector {name} takes no option {option}")
        if not isinstance(value, str | Path | None):
            raise InvalidInput(f"option {option} of connector {name} must be a path")
    paths = {option: Path(value) for option, value in options.items() if value is not None}
    if "root" not in paths:
        raise InvalidInput(f"connector {name} needs the option root")
    return build_connector(name, root=paths["root"], backup_dir=paths.get("backup_dir"), environ={})


def check_catalog() -> tuple[str, ...]:
    """Return what is wrong with the catalog, in words; nothing when every declared undo can be called."""
    from connectors.catalog import check_catalog as check

    return check()


def compensator_for(connectors: Iterable[Connector]) -> Compensator:
    """Return the function that runs a compensation call on whichever of `connectors` offers its tool."""
    from connectors.compensator import compensator_for as build

    return build(connectors)


def connector_schema_hashes(connector: Connector | ConnectorSpec) -> dict[str, str]:
    """Hash each tool's input schema: the baseline for `detect_manifest_drift`."""
    from connectors.core.schema_drift import connector_schema_hashes as hashes

    return hashes(connector)


def detect_manifest_drift(
    manifests: Iterable[Mapping[str, Any]],
    input_schemas: Mapping[str, Mapping[str, Any]],
    baseline: Mapping[str, str],
) -> ManifestDrift:
    """Name the tools that were added, removed or changed since the baseline."""
    from connectors.core.schema_drift import detect_manifest_drift as detect

    return detect(manifests, input_schemas, baseline)


def tool_table(connector: Connector | ConnectorSpec) -> str:
    """Render the tools of a connector as a Markdown table."""
    from connectors.core.tool_table import tool_table as render

    return render(connector)
