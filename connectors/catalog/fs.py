"""Files and directories below one root.

Every path is relative to the root. Absolute paths, `..` and links that lead outside are refused; links inside the root
are followed, except that deleting, moving and undoing never act through a link in the last part. The backup
directory is reserved and hidden. Results name canonical paths, so that `./a` and `a` are one thing to a plan.
`fs.resolve` and `fs.remove_file` are for files that another program on the machine changes: they take its absolute
paths, and only those.

Limits: content is read and written up to 10 MiB a call; a restored file has its content, mode and modification time,
and its owner where the system allows, but not its extended attributes or hard links; a change that another program
makes in the instant between the last look and a rename is replaced unseen; a moved directory is recognised by kind
and mode only. An undo whose answer was lost may be repeated. A deletion whose answer was lost is
settled by hand from the note that the backup directory keeps (see `connectors.core.files.backups`).
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connectors.core import files
from connectors.core.connector import Connector, ConnectorSpec
from connectors.core.fields import Field, FieldKind
from connectors.core.files import Disk, FileState, Kind
from connectors.core.tool import CallContext, Tool, UndoRow, VerificationRow
from reversi_sdk.model import Effect


def build(
    root: Path,
    backup_dir: Path | None = None,
    *,
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Connector:
    """Bind the tools to a root; raises `InvalidInput` when the root or the backup directory cannot be one."""
    return CONNECTOR.bind(Disk.at(root, backup_dir, new_id=new_id, now=now))


PATH = Field(FieldKind.STRING, "Path relative to the root, parts separated by /.")
ABSOLUTE = Field(FieldKind.STRING, "Absolute path below the root, as the program that was given it spells it.")
SHA256 = Field(FieldKind.STRING, "SHA-256 of the content.", is_nullable=True, pattern="[0-9a-f]{64}")
MODE = Field(FieldKind.STRING, "Permission bits, four octal digits.", is_nullable=True, pattern="[0-7]{4}")
KINDS = tuple(kind.value for kind in Kind)
STATE_MEMBERS = {
    "exists": Field(FieldKind.BOOLEAN, "Whether anything stood there."),
    "kind": Field(FieldKind.STRING, "What stood there.", is_required=False, is_nullable=True, choices=KINDS),
    "sha256": SHA256,
    "mode": MODE,
}
CONTENT_INPUTS = {
    "path": PATH,
    "content": Field(FieldKind.STRING, "The whole new content."),
    "encoding": Field(
        FieldKind.STRING,
        "How content is written down; utf-8 when left out.",
        is_required=False,
        choices=("utf-8", "base64"),
    ),
}
RESTORE_INPUTS = {
    "path": PATH,
    "backup": Field(FieldKind.STRING, "Id of the kept copy.", is_nullable=True, pattern=files.BACKUP_ID),
    "previous": Field(FieldKind.OBJECT, "The state to put back.", members=STATE_MEMBERS),
    "left": Field(FieldKind.OBJECT, "The state that the call left behind.", members=STATE_MEMBERS),
}
MOVE_INPUTS = {"source": PATH, "destination": PATH}
MOVED = Field(FieldKind.OBJECT, "The state of what was moved.", members=STATE_MEMBERS)

Result = dict[str, Any]
FileTool = Callable[[Disk, Mapping[str, Any], CallContext], Result]


def _file_tool(function: FileTool) -> FileTool:
    """Let an error of the system that comes before any effect leave as a definite failure naming the path."""

    @functools.wraps(function)
    def run(disk: Disk, args: Mapping[str, Any], context: CallContext) -> Result:
        with files.definite(args.get("path") or args.get("source") or "."):
            return function(disk, args, context)

    return run


@_file_tool
def _read_file(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    with disk.root.locate(args["path"], is_last_followed=True) as place:
        files.require_kind(place, files.look_in(place, is_hashed=False), {Kind.FILE})
        return files.read_content(place)


@_file_tool
def _list_dir(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    with disk.root.locate(args.get("path", "."), is_last_followed=True) as place:
        files.require_kind(place, files.look_in(place, is_hashed=False), {Kind.DIRECTORY})
        entries, unnameable, is_cut = files.list_entries(disk.root, place)
    return {"path": place.path, "entries": entries, "unnameable": unnameable, "truncated": is_cut}


@_file_tool
def _stat(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    with disk.root.locate(args["path"], is_last_followed=False) as place:
        return files.look_in(place).state.to_data()


@_file_tool
def _resolve(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    return files.resolve_path(disk.root, args["path"])


@_file_tool
def _write_file(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    content = files.decoded(args["content"], args.get("encoding", "utf-8"))
    with disk.root.locate(args["path"], is_last_followed=True) as place:
        seen = files.look_in(place)
        if seen.state.exists:
            files.require_kind(place, seen, {Kind.FILE})
            files.require_writable(place)
        files.require_parent(place)
        left, kept = files.replace_content(disk.backups, place, seen, [content])
    return {
        "path": place.path,
        "sha256": left.sha256,
        "mode": left.mode,
        "size": len(content),
        "backup": kept.id if kept else None,
        "previous": seen.state.to_data(),
        "left": left.to_data(),
    }


@_file_tool
def _delete_file(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    with disk.root.locate(args["path"], is_last_followed=False) as place:
        seen = files.look_in(place)
        files.require_kind(place, seen, {Kind.FILE})
        kept = disk.backups.take(place, seen)
    previous, left = kept.state.to_data(), FileState(exists=False).to_data()
    return {"path": place.path, "backup": kept.id, "previous": previous, "left": left}


@_file_tool
def _restore_file(disk: Disk, args: Mapping[str, Any], context: CallContext) -> Result:
    order = files.Restoration.from_data(args, is_overwrite_allowed=context.is_overwrite_allowed)
    done = files.restore(disk.root, disk.backups, order)
    return {
        "path": done.path,
        "restored": order.previous.to_data(),
        "already_restored": done.is_already_restored,
        "overwritten_backup": done.overwritten,
    }


@_file_tool
def _remove_file(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    return files.take_away(disk.root, disk.backups, args["path"])


@_file_tool
def _make_dir(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    with disk.root.locate(args["path"], is_last_followed=True) as place:
        created = files.make_directories(place)
    top = created[0] if created else place.path
    previous = {"exists": not created, "kind": None if created else Kind.DIRECTORY.value}
    return {"path": place.path, "created": list(created), "top": top, "previous": previous}


@_file_tool
def _remove_dir(disk: Disk, args: Mapping[str, Any], context: CallContext) -> Result:
    path, created = args["path"], args["created"]
    files.require_above(path, created)
    with disk.root.locate(path, is_last_followed=False):
        removed = files.take_back_directories(disk.root, created, is_overwrite_allowed=context.is_overwrite_allowed)
    top = created[0] if created else path
    return {"path": path, "top": top, "removed": list(removed), "already_removed": not removed}


@_file_tool
def _move_file(disk: Disk, args: Mapping[str, Any], _context: CallContext) -> Result:
    with (
        disk.root.locate(args["source"], is_last_followed=False) as source,
        disk.root.locate(args["destination"], is_last_followed=False) as destination,
    ):
        moved = files.move_to_free_name(disk.root, source, destination)
    return {"source": source.path, "destination": destination.path, "moved": moved.to_data()}


@_file_tool
def _unmove_file(disk: Disk, args: Mapping[str, Any], context: CallContext) -> Result:
    moved = FileState.from_data(args["moved"])
    with (
        disk.root.locate(args["source"], is_last_followed=False) as source,
        disk.root.locate(args["destination"], is_last_followed=False) as destination,
    ):
        is_moved = files.move_back(source, destination, moved, is_overwrite_allowed=context.is_overwrite_allowed)
    return {"source": source.path, "destination": destination.path, "already_restored": not is_moved}


BACKUP_STAYS = "where a file stood before, the backup directory keeps a copy of it"
NOT_RESTORED = "its extended attributes and hard links are not restored"


def _read_back(path: str, state: str, *members: str) -> VerificationRow:
    """Expect of `fs.stat` at a path of the result what the state in the result says."""
    expect = {member: f"$result.{state}.{member}" for member in members}
    return VerificationRow(tool="fs.stat", arguments={"path": f"$result.{path}"}, expect=expect)


RESTORE = UndoRow(
    tool="fs.restore_file",
    argument_map={
        "path": "$result.path",
        "backup": "$result.backup",
        "previous": "$result.previous",
        "left": "$result.left",
    },
    residue=(BACKUP_STAYS, NOT_RESTORED),
    verification=_read_back("path", "previous", "exists", "kind", "sha256", "mode"),
)
REMOVE_DIR = UndoRow(
    tool="fs.remove_dir",
    argument_map={"path": "$result.path", "created": "$result.created"},
    verification=_read_back("top", "previous", "exists", "kind"),
)
UNMOVE = UndoRow(
    tool="fs.unmove_file",
    argument_map={"source": "$result.source", "destination": "$result.destination", "moved": "$result.moved"},
    verification=_read_back("source", "moved", "exists", "kind", "sha256", "mode"),
)
TOUCHES_PATH = ("file:{{result.path}}",)
TOUCHES_TOP = ("file:{{result.top}}",)
TOUCHES_BOTH = ("file:{{result.source}}", "file:{{result.destination}}")

reading = functools.partial(Tool, effect=Effect.READ_ONLY, permission="fs:read")
changing = functools.partial(Tool, effect=Effect.REVERSIBLE, permission="fs:write")
undoing = functools.partial(Tool, effect=Effect.IDEMPOTENT, permission="fs:write", is_compensation_only=True)

TOOLS = (
    reading(
        name="fs.read_file",
        description="Read a file of up to 10 MiB: as text where it is UTF-8, else as base64.",
        inputs={"path": PATH},
        run=_read_file,
        summary="read {{args.path}}",
    ),
    reading(
        name="fs.list_dir",
        description="List a directory, the root when no path is given.",
        inputs={"path": replace(PATH, is_required=False)},
        run=_list_dir,
        summary="list a directory",
    ),
    reading(
        name="fs.stat",
        description="Say whether a path exists, what it is, its SHA-256 and its mode; absence is an answer.",
        inputs={"path": PATH},
        run=_stat,
        summary="look at {{args.path}}",
    ),
    reading(
        name="fs.resolve",
        description="Say where an absolute path leads, what stands there, and which directories it lacks.",
        inputs={"path": ABSOLUTE},
        run=_resolve,
        summary="look at {{args.path}}",
    ),
    changing(
        name="fs.write_file",
        description="Create or replace a file in one step; its directory must exist. What it replaces is kept.",
        inputs=CONTENT_INPUTS,
        run=_write_file,
        summary="write {{args.path}}",
        undo=RESTORE,
        touches=TOUCHES_PATH,
    ),
    changing(
        name="fs.delete_file",
        description="Delete a file by moving it into the backup directory.",
        inputs={"path": PATH},
        run=_delete_file,
        summary="delete {{args.path}}",
        undo=RESTORE,
        touches=TOUCHES_PATH,
    ),
    changing(
        name="fs.make_dir",
        description="Make a directory and its missing parents; one that exists is left as it is.",
        inputs={"path": PATH},
        run=_make_dir,
        summary="make the directory {{args.path}}",
        undo=REMOVE_DIR,
        touches=TOUCHES_TOP,
    ),
    changing(
        name="fs.move_file",
        description="Move a file or a directory to a name that is free, in a directory that exists.",
        inputs=MOVE_INPUTS,
        run=_move_file,
        summary="move {{args.source}} to {{args.destination}}",
        undo=UNMOVE,
        touches=TOUCHES_BOTH,
    ),
    undoing(
        name="fs.restore_file",
        description="Put back what stood at a path before a write or a deletion, or its absence.",
        inputs=RESTORE_INPUTS,
        run=_restore_file,
        summary="restore {{args.path}}",
        touches=TOUCHES_PATH,
        already_done=("the path is in the state to put back",),
    ),
    undoing(
        name="fs.remove_file",
        description="Take back a file that another program made, by moving it into the backup directory.",
        inputs={"path": ABSOLUTE},
        run=_remove_file,
        summary="remove {{args.path}}",
        touches=TOUCHES_PATH,
        already_done=("nothing stands at the path",),
    ),
    undoing(
        name="fs.remove_dir",
        description="Remove the directories that a fs.make_dir call made, if they are empty.",
        inputs={
            "path": PATH,
            "created": Field(FieldKind.ARRAY, "The directories made, topmost first.", items=PATH),
        },
        run=_remove_dir,
        summary="remove the directory {{args.path}}",
        touches=TOUCHES_TOP,
        already_done=("none of the directories exists",),
    ),
    undoing(
        name="fs.unmove_file",
        description="Move back what a fs.move_file call moved, if its old name is free.",
        inputs={**MOVE_INPUTS, "moved": MOVED},
        run=_unmove_file,
        summary="move {{args.destination}} back to {{args.source}}",
        touches=TOUCHES_BOTH,
        already_done=("the thing stands at its old name",),
    ),
)

CONNECTOR = ConnectorSpec("fs", TOOLS)
