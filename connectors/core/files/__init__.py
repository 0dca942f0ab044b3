"""The one door to the file system: confined to a root, atomic, with backups, and with the three outcomes.

Tool functions use what is named here and nothing of `os` that changes anything.
"""

from __future__ import annotations

from connectors.core.files.backups import BACKUP_ID, Backups
from connectors.core.files.confinement import ConfinedRoot, Place
from connectors.core.files.content import as_text, decoded
from connectors.core.files.directories import make_directories, require_above, take_back_directories
from connectors.core.files.errors import definite, shown
from connectors.core.files.moving import move_back, move_to_free_name
from connectors.core.files.overwriting import Restoration, replace_content, restore
from connectors.core.files.reading import list_entries, read_bytes
from connectors.core.files.relative_path import DEFAULT_BACKUP_NAME
from connectors.core.files.standing import look_in, require_kind, require_parent, require_writable
from connectors.core.files.state import FileState, Kind, mode_text

__all__ = [
    "BACKUP_ID",
    "DEFAULT_BACKUP_NAME",
    "Backups",
    "ConfinedRoot",
    "FileState",
    "Kind",
    "Place",
    "Restoration",
    "as_text",
    "decoded",
    "definite",
    "list_entries",
    "look_in",
    "make_directories",
    "mode_text",
    "move_back",
    "move_to_free_name",
    "read_bytes",
    "replace_content",
    "require_above",
    "require_kind",
    "require_parent",
    "require_writable",
    "restore",
    "shown",
    "take_back_directories",
]
