"""The deployment's configuration: `reversi.config.yaml`, over which environment variables win.

Unknown keys are errors. Keys that later parts of Reversi read are refused by name until they have an effect: a
setting that is silently ignored is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.core.upstream_specs import NO_SERVER_URL, OF_SESSION, UpstreamSpec, is_server_url
from reversi_sdk.errors import InvalidInput

FILE_NAME = "reversi.config.yaml"
CONNECTOR_KEYS = frozenset({"name", "connector", "root", "backup_dir"})
COMMAND_KEYS = frozenset({"name", "cmd", "args", "env", "cwd", "prefix", "session"})
URL_KEYS = frozenset({"name", "url", "headers", "prefix", "session"})
SESSIONS = frozenset({"own", "live"})
# Steps remember the name with a session's mark, in 128 characters.
NAME = 100
# The working folder of whichever process starts is no place to let an agent loose on.
ROOTED = frozenset({"fs"})


class ConfigurationInvalid(InvalidInput):
    """The configuration file or an environment variable is not what it must be."""

    code = "configuration_invalid"


@dataclass(frozen=True, slots=True)
class ConnectorUpstream:
    """An in-process connector whose tools calls and undos may reach."""

    name: str
    connector: str
    root: Path | None
    backup_dir: Path | None


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the deployment was told; paths are resolved against the file that named them."""

    manifests: tuple[Path, ...] = ()
    kill_switch_file: Path | None = None
    compensator_cmd: str | None = None
    reader_cmd: str | None = None
    connectors: tuple[ConnectorUpstream, ...] = ()
    servers: tuple[UpstreamSpec, ...] = ()
    redaction: tuple[str, ...] = ()
    source: Path | None = field(default=None)


def load_configuration(environ: Mapping[str, str], working_folder: Path) -> Configuration:
    """Read the file that `REVERSI_CONFIG` names, else the one in the working folder, then the environment."""
    named = environ.get("REVERSI_CONFIG")
    path = Path(named) if named else working_folder / FILE_NAME
    if not named and not path.exists():
        return _with_environment({}, None, environ)
    return _with_environment(_read(path), path, environ)


def load_worker_count(environ: Mapping[str, str]) -> int:
    """Return how many processes one worker runs: `REVERSI_WORKERS`, else 2."""
    text = environ.get("REVERSI_WORKERS") or "2"
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 3 and int(text) >= 1):
        raise ConfigurationInvalid(f"REVERSI_WORKERS: must be a number from 1 to 999, not {text!r}")
    return int(text)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationInvalid(f"{path}: {error.strerror or error}") from error
    from reversi_sdk.strict_yaml import load_yaml

    value = load_yaml(data, name=str(path)).value
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationInvalid(f"{path}: must be an object of settings")
    return value


def _with_environment(values: Mapping[str, Any], path: Path | None, environ: Mapping[str, str]) -> Configuration:
    folder = path.parent if path else Path()
    settings: dict[str, Any] = {}
    for key, value in values.items():
        reader = _READERS.get(key)
        if reader is None:
            raise ConfigurationInvalid(f"{path}: {_unknown(key)}")
        settings |= _read_setting(key, reader(f"{path}: {key}", value, folder))
    for name in sorted(_LATER_VARIABLES & environ.keys()):
        raise ConfigurationInvalid(f"{name}: this version does not have it yet; unset it")
    overrides = {
        "kill_switch_file": environ.get("REVERSI_KILL_FILE"),
        "compensator_cmd": environ.get("REVERSI_COMPENSATOR_CMD"),
        "reader_cmd": environ.get("REVERSI_READER_CMD"),
    }
    for key, text in overrides.items():
        if text:
            settings[key] = _READERS[key](key, text, Path())
    return Configuration(**settings, source=path)


def _read_setting(key: str, value: Any) -> dict[str, Any]:
    if key != "upstreams":
        return {key: value}
    return {
        "connectors": tuple(each for each in value if isinstance(each, ConnectorUpstream)),
        "servers": tuple(each for each in value if isinstance(each, UpstreamSpec)),
    }


def _unknown(key: Any) -> str:
    if key in _LATER:
        return f"{key}: this version does not have it yet; remove the line"
    return f"{key}: unknown setting; known are {', '.join(sorted(_READERS))}"


def _text(place: str, value: Any, folder: Path) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ConfigurationInvalid(f"{place}: must be a non-empty text")
    return value


def _path(place: str, value: Any, folder: Path) -> Path:
    return folder / _text(place, value, folder)


def _paths(place: str, value: Any, folder: Path) -> tuple[Path, ...]:
    entries = value if isinstance(value, list) else [value]
    paths = tuple(_path(place, entry, folder) for entry in entries)
    if any(str(entry).startswith(("http://", "https://")) or entry == "db" for entry in entries):
        raise ConfigurationInvalid(f"{place}: this version reads plain manifest files and folders only")
    return paths


def _texts(place: str, value: Any, folder: Path) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ConfigurationInvalid(f"{place}: must be a list")
    return tuple(_text(place, entry, folder) for entry in value)


def _references(place: str, value: Any, folder: Path) -> tuple[str, ...]:
    from reversi_sdk.references import ReferenceInvalid, Root, Spelling, parse_reference, spelling_of

    roots = (Root.ARGS, Root.RESULT, Root.BEFORE)
    texts = _texts(place, value, folder)
    for text in texts:
        try:
            parse_reference(text, spelling=spelling_of(text, default=Spelling.CONTRACT), roots=roots)
        except ReferenceInvalid as error:
            raise ConfigurationInvalid(f"{place}: {error.problem}") from error
    return texts


Upstream = ConnectorUpstream | UpstreamSpec


def _upstreams(place: str, value: Any, folder: Path) -> tuple[Upstream, ...]:
    if not isinstance(value, list):
        raise ConfigurationInvalid(f"{place}: must be a list")
    upstreams = tuple(_upstream(f"{place}[{index}]", entry, folder) for index, entry in enumerate(value))
    names = [upstream.name for upstream in upstreams]
    if len(set(names)) != len(names):
        raise ConfigurationInvalid(f"{place}: two upstreams have the same name")
    return upstreams


def _upstream(place: str, value: Any, folder: Path) -> Upstream:
    named = [key for key in _KINDS if isinstance(value, dict) and key in value]
    if len(named) != 1:
        raise ConfigurationInvalid(f"{place}: must be an object with one of connector, cmd and url")
    keys, read = _KINDS[named[0]]
    unknown = sorted(str(key) for key in value.keys() - keys)
    if unknown:
        raise ConfigurationInvalid(f"{place}: unknown key {unknown[0]}; known are {', '.join(sorted(keys))}")
    return read(place, value, folder)


def _connector(place: str, value: Mapping[str, Any], folder: Path) -> ConnectorUpstream:
    connector = _text(f"{place}.connector", value.get("connector"), folder)
    if connector in ROOTED and "root" not in value:
        raise ConfigurationInvalid(f"{place}: {connector} needs root, the one folder that it may touch")
    optional = {key: _path(f"{place}.{key}", value[key], folder) for key in ("root", "backup_dir") if key in value}
    return ConnectorUpstream(
        name=_upstream_name(place, value.get("name", connector), folder),
        connector=connector,
        root=optional.get("root"),
        backup_dir=optional.get("backup_dir"),
    )


def _command(place: str, value: Mapping[str, Any], folder: Path) -> UpstreamSpec:
    arguments = value.get("args", [])
    if not isinstance(arguments, list) or not all(isinstance(each, str) and "\0" not in each for each in arguments):
        raise ConfigurationInvalid(f"{place}.args: must be a list of texts")
    return UpstreamSpec(
        command=(_text(f"{place}.cmd", value["cmd"], folder), *arguments),
        env=_names(f"{place}.env", value.get("env", {})),
        # The folder of the file, not of whoever starts: a worker must start the very server that the gateway did.
        cwd=(folder / _text(f"{place}.cwd", value.get("cwd", "."), folder)).absolute(),
        **_common(place, value, folder),
    )


def _url(place: str, value: Mapping[str, Any], folder: Path) -> UpstreamSpec:
    url = _text(f"{place}.url", value["url"], folder)
    if not is_server_url(url):
        raise ConfigurationInvalid(f"{place}.url: {NO_SERVER_URL}")
    headers = _names(f"{place}.headers", value.get("headers", {}))
    return UpstreamSpec(url=url, headers=headers, **_common(place, value, folder))


def _upstream_name(place: str, value: Any, folder: Path) -> str:
    name = _text(f"{place}.name", value, folder)
    if len(name) > NAME or OF_SESSION in name:
        raise ConfigurationInvalid(f"{place}.name: must be at most {NAME} characters long, without {OF_SESSION}")
    return name


def _common(place: str, value: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    name = _upstream_name(place, value.get("name"), folder)
    session = value.get("session", "own")
    if session not in SESSIONS:
        raise ConfigurationInvalid(f"{place}.session: must be own or live")
    prefix = value.get("prefix", "")
    if not isinstance(prefix, str) or prefix.startswith("reversi."):
        raise ConfigurationInvalid(f"{place}.prefix: must be a text, and reversi. is taken")
    return {"name": name, "prefix": prefix, "is_live": session == "live"}


def _names(place: str, value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise ConfigurationInvalid(f"{place}: must be an object of texts")
    return tuple(value.items())


_KINDS: Mapping[str, tuple[frozenset[str], Callable[[str, Mapping[str, Any], Path], Upstream]]] = {
    "connector": (CONNECTOR_KEYS, _connector),
    "cmd": (COMMAND_KEYS, _command),
    "url": (URL_KEYS, _url),
}
_READERS: Mapping[str, Callable[[str, Any, Path], Any]] = {
    "manifests": _paths,
    "kill_switch_file": _path,
    "compensator_cmd": _text,
    "reader_cmd": _text,
    "upstreams": _upstreams,
    "redaction": _references,
}
# Whoever sets it believes that manifests are checked against the key.
_LATER_VARIABLES = frozenset({"REVERSI_MANIFEST_PUBLIC_KEY"})
_LATER = frozenset(
    {"manifest_public_key", "egress", "policy", "mode", "notifications", "require_four_eyes", "retention_days"}
)
