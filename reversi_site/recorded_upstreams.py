"""What gateways on this store have served: `upstreams.json` in the data folder.

An upstream that a gateway was given by flags stands in no configuration; without this record a worker, or `reversi
rollback`, could not reach what it has to undo. The tools that an upstream listed stand there too, so that a plan can
say what nobody runs without starting a server. The connectors that a gateway was given stand with its upstream: their
paths mean something in their own root only. Of a configured upstream its place is kept: two configurations may give one
name to two servers, and an undo goes by the name. Mode 0600, since arguments may hold what is nobody else's business;
replaced whole, under a lock.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.core.upstream_specs import UpstreamSpec
from reversi_sdk.errors import Conflict, InvalidInput
from reversi_site.configuration import Configuration, ConnectorUpstream
from reversi_site.file_locks import locked
from reversi_site.secret_files import DataFolderUnusable, prepare_folder

FILE_NAME = "upstreams.json"


class RecordDamaged(InvalidInput):
    """The record cannot be read; without it nothing is guessed."""

    code = "upstream_record_damaged"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is damaged ({why}): remove it, and start the gateways again, which write it anew")


@dataclass(frozen=True, slots=True)
class Recorded:
    """An upstream on record; `spec` is None for a configured one, `tools` None where nobody has seen its list."""

    spec: UpstreamSpec | None
    tools: frozenset[str] | None
    connectors: tuple[ConnectorUpstream, ...] = ()
    place: str | None = None


class UpstreamElsewhere(Conflict):
    """The name of an upstream belongs to another one on this store."""

    code = "upstream_elsewhere"

    def __init__(self, name: str, place: str, known: str, path: Path) -> None:
        super().__init__(
            f"on this store the upstream {name} is the one at {known}, not the one at {place}: undos go by the name, "
            f"so give one of them another; if it has only moved, remove {name} from {path}"
        )


def place_of(configuration: Configuration, name: str) -> str | None:
    """Return where the configured upstream of that name is: a folder, or a URL without credentials."""
    for spec in configuration.servers:
        if spec.name == name:
            return spec.place if spec.url is not None else _folder(spec.cwd)
    return _folder(next((each.root for each in configuration.connectors if each.name == name), None))


def _folder(path: Path | None) -> str | None:
    """Write a folder in one way, from wherever it was named; links stay, since what they lead to may change."""
    return None if path is None else os.path.normpath(path.absolute())


def where_it_is(recorded: str | None, configured: str | None) -> str:
    """Say where calls went, and where the configuration has the upstream of that name instead."""
    here = "nowhere" if configured is None else f"at {configured}"
    return f"calls on this store went to the one at {recorded}, this configuration has it {here}"


def load_recorded(folder: Path) -> Mapping[str, Recorded]:
    """Return what is on record, by name; raises RecordDamaged."""
    return {name: _recorded(folder / FILE_NAME, name, entry) for name, entry in _read(folder / FILE_NAME).items()}


def record_upstream(
    folder: Path,
    name: str,
    *,
    spec: UpstreamSpec | None = None,
    connectors: Sequence[ConnectorUpstream] = (),
    tools: Sequence[str] | None = None,
    place: str | None = None,
) -> None:
    """Put an upstream on record, under the names that agents use for its tools; what was known of it is replaced.

    `spec` and `connectors` are left out for what a configuration describes, which has a `place` instead. A listing that
    could not be had leaves the last one standing. Raises UpstreamElsewhere, RecordDamaged and DataFolderUnusable.
    """
    prepare_folder(folder)
    path = folder / FILE_NAME
    with locked(path):
        entries = dict(_read(path))
        known = entries.get(name, {})
        known_place = known.get("place")
        if place is not None and known_place not in (None, place):
            raise UpstreamElsewhere(name, place, known_place, path)
        entry: dict[str, Any] = {"tools": known.get("tools") if tools is None else sorted(tools)}
        if place is not None:
            entry["place"] = place
        if spec is not None:
            entry["spec"] = _spec_json(spec)
        if connectors:
            entry["connectors"] = [_connector_json(each) for each in connectors]
        _replace(path, {**entries, name: entry})


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataFolderUnusable(path.parent, error.strerror or str(error)) from error
    try:
        entries = json.loads(text)["upstreams"]
    except (ValueError, KeyError, TypeError) as error:
        raise RecordDamaged(path, "it is not what a gateway writes") from error
    if not isinstance(entries, dict):
        raise RecordDamaged(path, "its upstreams are no object")
    return entries


def _recorded(path: Path, name: str, entry: Any) -> Recorded:
    try:
        tools = entry["tools"]
        spec = None if "spec" not in entry else _spec(name, entry["spec"])
        connectors = tuple(_connector(each) for each in entry.get("connectors", ()))
        return Recorded(spec, None if tools is None else frozenset(tools), connectors, entry.get("place"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordDamaged(path, f"the entry {name}") from error


def _spec_json(spec: UpstreamSpec) -> dict[str, Any]:
    return {
        "command": None if spec.command is None else list(spec.command),
        "cwd": None if spec.cwd is None else str(spec.cwd),
        "url": spec.url,
        "prefix": spec.prefix,
        "session": "live" if spec.is_live else "own",
    }


def _spec(name: str, entry: Mapping[str, Any]) -> UpstreamSpec:
    command, cwd = entry["command"], entry["cwd"]
    return UpstreamSpec(
        name=name,
        command=None if command is None else tuple(command),
        cwd=None if cwd is None else Path(cwd),
        url=entry["url"],
        prefix=entry["prefix"],
        is_live=entry["session"] == "live",
    )


def _connector_json(upstream: ConnectorUpstream) -> dict[str, Any]:
    backups = upstream.backup_dir
    return {
        "name": upstream.name,
        "connector": upstream.connector,
        "root": None if upstream.root is None else str(upstream.root.absolute()),
        "backup_dir": None if backups is None else str(backups.absolute()),
    }


def _connector(entry: Mapping[str, Any]) -> ConnectorUpstream:
    root, backups = entry["root"], entry["backup_dir"]
    return ConnectorUpstream(
        name=entry["name"],
        connector=entry["connector"],
        root=None if root is None else Path(root),
        backup_dir=None if backups is None else Path(backups),
    )


def _replace(path: Path, entries: Mapping[str, Any]) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"upstreams": entries}, file, indent=2, sort_keys=True, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
