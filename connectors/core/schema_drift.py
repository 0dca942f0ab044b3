"""Whether a connector's tools still take what they took: hashes of input schemas, compared with a kept baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.core.connector import Connector, ConnectorSpec
from reversi_sdk.canonical import canonical_bytes, sha256_hex


@dataclass(frozen=True, slots=True)
class ManifestDrift:
    """Names of tools, sorted, that a baseline does not know, alone knows, or knows with another schema."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing drifted."""
        return not (self.added or self.removed or self.changed)


def connector_schema_hashes(connector: Connector | ConnectorSpec) -> dict[str, str]:
    """Hash each tool's input schema: 64 hexadecimal digits over its canonical JSON, whatever the key order."""
    return {name: _hash(schema) for name, schema in connector.input_schemas.items()}


def detect_manifest_drift(
    manifests: Iterable[Mapping[str, Any]],
    input_schemas: Mapping[str, Mapping[str, Any]],
    baseline: Mapping[str, str],
) -> ManifestDrift:
    """Compare the tools of `manifests` with a baseline from `connector_schema_hashes`.

    A tool that has a manifest and stands in the baseline, but whose input schema is gone, counts as changed.
    """
    now = {str(manifest["tool"]) for manifest in manifests}
    hashes = {name: _hash(schema) for name, schema in input_schemas.items() if name in now}
    return ManifestDrift(
        added=tuple(sorted(now - baseline.keys())),
        removed=tuple(sorted(baseline.keys() - now)),
        changed=tuple(sorted(name for name in now & baseline.keys() if hashes.get(name) != baseline[name])),
    )


def _hash(schema: Mapping[str, Any]) -> str:
    return sha256_hex(canonical_bytes(schema))
