"""The one door to the file system: confined to a root, atomic, with backups, and with the three outcomes.

Tool functions use what is named here and nothing of `os` that changes anything.
"""

from __future__ import annotations

from connectors.core.files.backups import BACKUP_ID, Backups
from connectors.core.files.confinement import ConfinedRoot, Place
from connectors.core.files.content import decoded
from connectors.core.files.directories import make_directories, require_above, take_back_directories
from connectors.core.files.disk import Disk
from connectors.core.files.errors import definite, shown
from connectors.core.files.moving import move_back, move_to_free_name
from connectors.core.files.overwriting import Restoration, replace_content, restore
from connectors.core.files.reading import list_entries, read_content
from connectors.core.files.relative_path import DEFAULT_BACKUP_NAME
from connectors.core.files.resolving import resolve_path, take_away
from connectors.core.files.standing import look_in, require_kind, require_parent, require_writable
from connectors.core.files.state import FileState, Kind, mode_text

__all__ = [
    "BACKUP_ID",
    "DEFAULT_BACKUP_NAME",
    "Backups",
    "ConfinedRoot",
    "Disk",
    "FileState",
    "Kind",
    "Place",
    "Restoration",
    "decoded",
    "definite",
    "list_entries",
    "look_in",
    "make_directories",
    "mode_text",
    "move_back",
    "move_to_free_name",
    "read_content",
    "replace_content",
    "require_above",
    "require_kind",
    "require_parent",
    "require_writable",
    "resolve_path",
    "restore",
    "shown",
    "take_away",
    "take_back_directories",
]
