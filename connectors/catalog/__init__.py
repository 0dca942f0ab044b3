"""The connectors that there are: an explicit list, each module imported when it is first needed."""

from __future__ import annotations

from importlib import import_module

from connectors.core.catalog_rules import catalog_problems
from connectors.core.connector import ConnectorSpec
from reversi_sdk.errors import NotFound

MODULES = ("connectors.catalog.fs",)


def connector_names() -> tuple[str, ...]:
    """Return the names of all connectors, in the order of the catalog."""
    return tuple(module.rpartition(".")[2] for module in MODULES)


def connector_spec(name: str) -> ConnectorSpec:
    """Return the tool table of a connector; raises `NotFound` for a name that is not in the catalog."""
    if name not in connector_names():
        raise NotFound(f"no connector is named {name}; there is {', '.join(connector_names())}")
    spec = import_module(f"connectors.catalog.{name}").CONNECTOR
    if not isinstance(spec, ConnectorSpec):
        raise TypeError(f"connectors.catalog.{name}.CONNECTOR is no ConnectorSpec")
    return spec


def check_catalog() -> tuple[str, ...]:
    """Return what is wrong with the catalog, in words; nothing when every declared undo can be called."""
    return catalog_problems(connector_spec(name) for name in connector_names())
