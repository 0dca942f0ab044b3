from __future__ import annotations

from dataclasses import replace

import pytest

from connectors import connector_schema_hashes, detect_manifest_drift
from connectors.core.connector import ConnectorSpec
from connectors.core.fields import Field, FieldKind
from connectors.core.schema_drift import ManifestDrift
from tests.connectors.core.tables import CANCEL, GET, ORDER, shop

WIDER = replace(GET, inputs={**GET.inputs, "depth": Field(FieldKind.INTEGER, "How deep.", is_required=False)})


def drift_of(now: ConnectorSpec, baseline: ConnectorSpec) -> ManifestDrift:
    return detect_manifest_drift(now.manifests(), now.input_schemas, connector_schema_hashes(baseline))


@pytest.mark.parametrize(
    ("now", "baseline", "expected"),
    [
        (shop(), shop(), ManifestDrift((), (), ())),
        (shop(), shop(GET), ManifestDrift(("shop.cancel", "shop.order"), (), ())),
        (shop(CANCEL), shop(), ManifestDrift((), ("shop.get", "shop.order"), ())),
        (shop(WIDER, ORDER), shop(GET, ORDER), ManifestDrift((), (), ("shop.get",))),
        (shop(WIDER, CANCEL), shop(GET, ORDER), ManifestDrift(("shop.cancel",), ("shop.order",), ("shop.get",))),
    ],
)
def test_drift_names_what_differs(now: ConnectorSpec, baseline: ConnectorSpec, expected: ManifestDrift) -> None:
    assert drift_of(now, baseline) == expected


def test_drift_is_empty_without_differences() -> None:
    assert drift_of(shop(), shop()).is_empty
    assert not drift_of(shop(WIDER), shop(GET)).is_empty


def test_lost_schema_counts_as_changed() -> None:
    baseline = connector_schema_hashes(shop(GET))

    assert detect_manifest_drift(shop(GET).manifests(), {}, baseline).changed == ("shop.get",)


def test_hash_ignores_the_order_of_keys() -> None:
    schema = shop(GET).input_schemas["shop.get"]
    turned = {key: schema[key] for key in reversed(schema)}

    drift = detect_manifest_drift(shop(GET).manifests(), {"shop.get": turned}, connector_schema_hashes(shop(GET)))

    assert drift.is_empty


def test_hashes_are_whole_sha256_digests() -> None:
    hashes = connector_schema_hashes(shop())

    assert {len(digest) for digest in hashes.values()} == {64}
