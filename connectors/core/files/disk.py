"""What file tools run on: a root, and the place where what they replace is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from connectors.core.files.backups import Backups
from connectors.core.files.confinement import ConfinedRoot


@dataclass(frozen=True, slots=True)
class Disk:
    """A root and its backups."""

    root: ConfinedRoot
    backups: Backups

    @classmethod
    def at(cls, root: Path, backup_dir: Path | None, *, new_id: Callable[[], str], now: Callable[[], datetime]) -> Disk:
        """Confine to a root; raises `InvalidInput` when it or the backup directory cannot be one."""
        confined = ConfinedRoot.at(root, backup_dir)
        return cls(confined, Backups(confined, new_id, now))
