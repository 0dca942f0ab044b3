"""Secrets that are made on first use and kept as files of mode 0600 under the data folder.

Each may come from an environment variable instead. A file is created whole or not at all, also when two processes
start at once: the content is written beside it and linked into place, and the loser reads the winner's.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from reversi_sdk.errors import InvalidInput, Unavailable

KEY_BYTES = 32


class DataFolderUnusable(Unavailable):
    """The data folder cannot be created, read or written."""

    code = "data_folder_unusable"

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(f"the data folder {folder} cannot be used: {why}; choose another with --data or REVERSI_DATA")


class SecretMalformed(InvalidInput):
    """A key given by file or environment does not have the form it must have."""

    code = "secret_malformed"


def prepare_folder(folder: Path) -> None:
    """Create the data folder with mode 0700 when it is missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataFolderUnusable(folder, error.strerror or str(error)) from error


def load_or_create(path: Path, make: Callable[[], str]) -> str:
    """Return the text of the secret file, made by `make` when there is none yet."""
    try:
        if not path.exists():
            _create(path, make())
        return path.read_text(encoding="ascii").strip()
    except UnicodeDecodeError as error:
        raise SecretMalformed(f"{path} is not plain text: restore it from your backup") from error
    except OSError as error:
        raise DataFolderUnusable(path.parent, error.strerror or str(error)) from error


def _create(path: Path, text: str) -> None:
    prepare_folder(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)


def new_text_key() -> str:
    """Return a fresh random secret as text."""
    return secrets.token_urlsafe(KEY_BYTES)


def new_key_ring() -> str:
    """Return a key ring of one fresh key: `id:base64`, newest first, separated by white space or commas."""
    return f"k{secrets.token_hex(4)}:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"


def parse_key_ring(text: str, *, name: str) -> Mapping[str, bytes]:
    """Return the ring's keys by id, the current one first; `name` says where it came from in errors."""
    ring: dict[str, bytes] = {}
    for entry in text.replace(",", " ").split():
        key_id, _, encoded = entry.partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except ValueError as error:
            raise SecretMalformed(f"{name}: the key {key_id!r} is not base64") from error
        if not key_id or len(key) != KEY_BYTES:
            raise SecretMalformed(f"{name}: each entry must be id:base64 of {KEY_BYTES} bytes")
        ring[key_id] = key
    if not ring:
        raise SecretMalformed(f"{name}: no key in it")
    return ring
