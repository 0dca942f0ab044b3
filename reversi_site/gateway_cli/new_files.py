"""The files of a new gateway: its configuration, and drafts of the manifests for what stands behind it.

Nothing is overwritten unless that is asked for, and each file is written whole or not at all.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from gateway.core.upstream_specs import UpstreamSpec
from manifests_registry.core.drafting import Drafting
from reversi_sdk.errors import Conflict, InvalidInput
from reversi_site.configuration import FILE_NAME

MANIFESTS = "manifests"

Files = Mapping[Path, str]


class FilesExist(Conflict):
    """Files stand where new ones would be written."""

    code = "files_exist"

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(f"nothing was written: {', '.join(map(str, paths))} would be overwritten; --force does that")


class FolderUnusable(InvalidInput):
    """The files cannot be written there."""

    code = "folder_unusable"


@dataclass(frozen=True, slots=True)
class NewConnector:
    """A connector of ours beside the server, and its manifests, which are no guesses."""

    name: str
    root: Path
    manifests: str


@dataclass(frozen=True, slots=True)
class NewGateway:
    """What stands behind the gateway that is set up in `folder`; paths that lie in `base` are written relatively."""

    folder: Path
    base: Path
    spec: UpstreamSpec | None
    connector: NewConnector | None

    @property
    def configuration(self) -> Path:
        """Where the configuration goes."""
        return self.folder / FILE_NAME

    @property
    def manifests(self) -> Path:
        """Where the manifests go."""
        return self.folder / MANIFESTS


def new_files(gateway: NewGateway, drafting: Drafting | None) -> Files:
    """Return every file with its content, the configuration first; most servers need one file of drafts."""
    files = {gateway.configuration: "".join(f"{line}\n" for line in _configuration(gateway))}
    if drafting is not None:
        for number, document in enumerate(drafting.documents):
            name = f"{drafting.upstream}-{number + 1}.yaml" if number else f"{drafting.upstream}.yaml"
            files[gateway.manifests / name] = document
    if gateway.connector is not None:
        files[gateway.manifests / f"connector-{gateway.connector.name}.yaml"] = gateway.connector.manifests
    return files


def _configuration(gateway: NewGateway) -> Iterator[str]:
    yield "# Read by reversi-gateway, reversi and reversi-server. Paths are relative to this file."
    yield f"manifests: {MANIFESTS}"
    yield "upstreams:"
    if gateway.spec is not None:
        yield from _server(gateway, gateway.spec)
    if gateway.connector is not None:
        yield f"  - name: {_text(gateway.connector.name)}"
        yield f"    connector: {_text(gateway.connector.name)}"
        yield f"    root: {_path(gateway, gateway.connector.root)}"


def _server(gateway: NewGateway, spec: UpstreamSpec) -> Iterator[str]:
    yield "  # Steps remember this name, and their undos go to the upstream that has it: keep it."
    yield f"  - name: {_text(spec.name)}"
    if spec.url is not None:
        yield f"    url: {_text(spec.url)}"
    if spec.command is not None:
        yield f"    cmd: {_text(spec.command[0])}"
        yield f"    args: [{', '.join(map(_text, spec.command[1:]))}]"
        yield f"    cwd: {_path(gateway, gateway.base)}"


def _path(gateway: NewGateway, path: Path) -> str:
    """Write a path so that the folder can be moved together with what lies beside it, where it does."""
    is_near = all(each.is_relative_to(gateway.base) for each in (path, gateway.folder))
    return _text(os.path.relpath(path, gateway.folder) if is_near else str(path))


def _text(text: str) -> str:
    """Write any text so that it reads back as it is."""
    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**9)).strip()


def refuse_to_overwrite(paths: Sequence[Path]) -> None:
    """Raise FilesExist when one of the paths is taken."""
    taken = [path for path in paths if os.path.lexists(path)]
    if taken:
        raise FilesExist(taken)


def write_files(files: Files) -> None:
    """Write the files and the folders that they need; raises FolderUnusable."""
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, text)
        except OSError as error:
            raise FolderUnusable(f"{path} cannot be written: {error.strerror or error}") from error


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
