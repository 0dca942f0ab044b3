"""Files and directories below one root.

Every path is relative to the root. Absolute paths, `..` and links that lead outside are refused; links inside the root
are followed, except that deleting, moving and undoing never act through a link in the last part. The backup
directory is reserved and hidden. Results name canonical paths, so that `./a` and `a` are one thing to a plan.

Limits: content is read and written up to 10 MiB a call; a restored file has its content, mode and modification time,
and its owner where the system allows, but not its extended attributes or hard links; a change that another program
makes in the instant between the last look and a rename is replaced unseen; a moved directory is recognised by kind
and mode only. An undo whose answer was lost may be repeated. A deletion whose answer was lost is
settled by hand from the note that the backup directory keeps (see `connectors.core.files.backups`).
"""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connectors.core.connector import Connector, ConnectorSpec
from connectors.core.fields import Field, FieldKind
from connectors.core.files import (
    BACKUP_ID,
    DEFAULT_BACKUP_NAME,
    MOVABLE,
    Backups,
    ConfinedRoot,
    FileState,
    Kind,
    Restoration,
    as_text,
    decoded,
    definite,
    list_entries,
    look_in,
    make_directories,
    mode_text,
    move,
    move_back,
    read_bytes,
    replace_content,
    require_kind,
    require_parent,
    require_writable,
    restore,
    shown,
    take_back_directories,
)
from connectors.core.outcomes import ToolError
from connectors.core.tool import CallContext, Tool, UndoRow, VerificationRow
from reversi_sdk.errors import InvalidInput
from reversi_sdk.model import Effect


@dataclass(frozen=True, slots=True)
class Files:
    """What the tools run on."""

    root: ConfinedRoot
    backups: Backups


def build(
    root: Path,
    backup_dir: Path | None = None,
    *,
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Connector:
    """Bind the tools to a root; raises `InvalidInput` when the root or the backup directory cannot be one."""
    real_root = _resolved(root)
    if not real_root.is_dir():
        raise InvalidInput(f"the root {root} is not a directory")
    reserved = real_root / DEFAULT_BACKUP_NAME if backup_dir is None else _resolved(backup_dir)
    if real_root.is_relative_to(reserved):
        raise InvalidInput(f"the backup directory {reserved} must not be the root or contain it")
    if not reserved.parent.is_dir():
        raise InvalidInput(f"the backup directory {reserved} must be in a directory that exists")
    confined = ConfinedRoot(real_root, reserved)
    return CONNECTOR.bind(Files(confined, Backups(confined, new_id, now)))


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise InvalidInput(f"the directory {str(path)!r} cannot be found") from None


PATH = Field(FieldKind.STRING, "Path relative to the root, parts separated by /.")
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
    "backup": Field(FieldKind.STRING, "Id of the kept copy.", is_nullable=True, pattern=BACKUP_ID),
    "previous": Field(FieldKind.OBJECT, "The state to put back.", members=STATE_MEMBERS),
    "left": Field(FieldKind.OBJECT, "The state that the call left behind.", members=STATE_MEMBERS),
}
MOVE_INPUTS = {"source": PATH, "destination": PATH}
MOVED = Field(FieldKind.OBJECT, "The state of what was moved.", members=STATE_MEMBERS)

Result = dict[str, Any]
FileTool = Callable[[Files, Mapping[str, Any], CallContext], Result]


def _file_tool(function: FileTool) -> FileTool:
    """Let an error of the system that comes before any effect leave as a definite failure naming the path."""

    @functools.wraps(function)
    def run(files: Files, args: Mapping[str, Any], context: CallContext) -> Result:
        with definite(args.get("path") or args.get("source") or "."):
            return function(files, args, context)

    return run


@_file_tool
def _read_file(files: Files, args: Mapping[str, Any], _context: CallContext) -> Result:
    with files.root.locate(args["path"], is_last_followed=True) as place:
        require_kind(place, look_in(place, is_hashed=False), {Kind.FILE})
        content, status = read_bytes(place)
    text, encoding = as_text(content)
    return {
        "path": place.path,
        "content": text,
        "encoding": encoding,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "mode": mode_text(status.st_mode),
    }


@_file_tool
def _list_dir(files: Files, args: Mapping[str, Any], _context: CallContext) -> Result:
    with files.root.locate(args.get("path", "."), is_last_followed=True) as place:
        require_kind(place, look_in(place, is_hashed=False), {Kind.DIRECTORY})
        entries, unnameable, is_cut = list_entries(files.root, place)
    return {"path": place.path, "entries": entries, "unnameable": unnameable, "truncated": is_cut}


@_file_tool
def _stat(files: Files, args: Mapping[str, Any], _context: CallContext) -> Result:
    with files.root.locate(args["path"], is_last_followed=False) as place:
        return look_in(place).state.to_data()


@_file_tool
def _write_file(files: Files, args: Mapping[str, Any], _context: CallContext) -> Result:
    content = decoded(args["content"], args.get("encoding", "utf-8"))
    with files.root.locate(args["path"], is_last_followed=True) as place:
        seen = look_in(place)
        if seen.state.exists:
            require_kind(place, seen, {Kind.FILE})
            require_writable(place)
        require_parent(place)
        left, kept = replace_content(files.backups, place, seen, [content])
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
def _delete_file(files: Files, args: Mapping[str, Any], _context: CallContext) -> Result:
    with files.root.locate(args["path"], is_last_followed=False) as place:
        seen = look_in(place)
        require_kind(place, seen, {Kind.FILE})
        kept = files.backups.take(place, seen)
    previous, left = kept.state.to_data(), FileState(exists=False).to_data()
    return {"path": place.path, "backup": kept.id, "previous": previous, "left": left}


@_file_tool
def _restore_file(files: Files, args: Mapping[str, Any], context: CallContext) -> Result:
    order = Restoration(
        path=args["path"],
        backup=args["backup"],
        previous=FileState.from_data(args["previous"]),
        left=FileState.from_data(args["left"]),
        is_overwrite_allowed=context.is_overwrite_allowed,
    )
    done = restore(files.root, files.backups, order)
    return {
        "path": done.path,
        "restored": order.previous.to_data(),
        "already_restored": done.is_already_restored,
        "overwritten_backup": done.overwritten,
    }


@_file_tool
def _make_dir(files: Files, args: Mapping[str, Any], _context: CallContext) -> Result:
    with files.root.locate(args["path"], is_last_followed=True) as place:
        created = make_directories(place)
    top = created[0] if created else place.path
    previous = {"exists": not created, "kind": None if created else Kind.DIRECTORY.value}
    return {"path": place.path, "created": list(created), "top": top, "previous": previous}


@_file_tool
def _remove_dir(files: Files, args: Mapping[str, Any], context: CallContext) -> Result:
    path, created = args["path"], args["created"]
    for made in created:
        if made in ("", ".") or not f"{path}/".startswith(f"{made}/"):
            raise ToolError(f"argument created: {shown(made)} is neither {shown(path)} nor a directory above it")
    removed = take_back_directories(files.root, created, is_overwrite_allowed=context.is_overwrite_allowed)
    top = created[0] if created else path
    return {"path": path, "top": top, "removed": list(removed), "already_removed": not removed}


@_file_tool
def _move_file(files: Files, args: Mapping[str, Any], _context: CallContext) -> Result:
    with (
        files.root.locate(args["source"], is_last_followed=False) as source,
        files.root.locate(args["destination"], is_last_followed=False) as destination,
    ):
        seen = look_in(source)
        require_kind(source, seen, MOVABLE)
        if source.is_root:
            raise ToolError("the root itself cannot be moved")
        if files.root.holds_reserved(source.parts):
            raise ToolError(f"{shown(source.path)}: the backup directory lies in it and must stay where it is")
        if look_in(destination, is_hashed=False).state.exists:
            raise ToolError(f"{shown(destination.path)}: the name is taken; nothing was moved")
        require_parent(destination)
        moved = move(source, destination, seen)
    return {"source": source.path, "destination": destination.path, "moved": moved.to_data()}


@_file_tool
def _unmove_file(files: Files, args: Mapping[str, Any], context: CallContext) -> Result:
    moved = FileState.from_data(args["moved"])
    with (
        files.root.locate(args["source"], is_last_followed=False) as source,
        files.root.locate(args["destination"], is_last_followed=False) as destination,
    ):
        is_moved = move_back(source, destination, moved, is_overwrite_allowed=context.is_overwrite_allowed)
    return {"source": source.path, "destination": destination.path, "already_restored": not is_moved}


BACKUP_STAYS = "the backup directory keeps a copy of the previous file"
NOT_RESTORED = "extended attributes and hard links of the previous file are not restored"

READ_BACK_FILE = VerificationRow(
    tool="fs.stat",
    arguments={"path": "$result.path"},
    expect={
        "exists": "$result.previous.exists",
        "kind": "$result.previous.kind",
        "sha256": "$result.previous.sha256",
        "mode": "$result.previous.mode",
    },
)
RESTORE = UndoRow(
    tool="fs.restore_file",
    argument_map={
        "path": "$result.path",
        "backup": "$result.backup",
        "previous": "$result.previous",
        "left": "$result.left",
    },
    residue=(BACKUP_STAYS, NOT_RESTORED),
    verification=READ_BACK_FILE,
)
REMOVE_DIR = UndoRow(
    tool="fs.remove_dir",
    argument_map={"path": "$result.path", "created": "$result.created"},
    verification=VerificationRow(
        tool="fs.stat",
        arguments={"path": "$result.top"},
        expect={"exists": "$result.previous.exists", "kind": "$result.previous.kind"},
    ),
)
UNMOVE = UndoRow(
    tool="fs.unmove_file",
    argument_map={"source": "$result.source", "destination": "$result.destination", "moved": "$result.moved"},
    verification=VerificationRow(
        tool="fs.stat",
        arguments={"path": "$result.source"},
        expect={
            "exists": "$result.moved.exists",
            "kind": "$result.moved.kind",
            "sha256": "$result.moved.sha256",
            "mode": "$result.moved.mode",
        },
    ),
)
TOUCHES_PATH = ("file:{{result.path}}",)
TOUCHES_TOP = ("file:{{result.top}}",)
TOUCHES_BOTH = ("file:{{result.source}}", "file:{{result.destination}}")

TOOLS = (
    Tool(
        name="fs.read_file",
        effect=Effect.READ_ONLY,
        permission="fs:read",
        description="Read a file of up to 10 MiB: as text where it is UTF-8, else as base64.",
        inputs={"path": PATH},
        run=_read_file,
        summary="read {{args.path}}",
    ),
    Tool(
        name="fs.list_dir",
        effect=Effect.READ_ONLY,
        permission="fs:read",
        description="List a directory, the root when no path is given.",
        inputs={"path": replace(PATH, is_required=False)},
        run=_list_dir,
        summary="list a directory",
    ),
    Tool(
        name="fs.stat",
        effect=Effect.READ_ONLY,
        permission="fs:read",
        description="Say whether a path exists, what it is, its SHA-256 and its mode; absence is an answer.",
        inputs={"path": PATH},
        run=_stat,
        summary="look at {{args.path}}",
    ),
    Tool(
        name="fs.write_file",
        effect=Effect.REVERSIBLE,
        permission="fs:write",
        description="Create or replace a file in one step; its directory must exist. What it replaces is kept.",
        inputs=CONTENT_INPUTS,
        run=_write_file,
        summary="write {{args.path}}",
        undo=RESTORE,
        touches=TOUCHES_PATH,
    ),
    Tool(
        name="fs.delete_file",
        effect=Effect.REVERSIBLE,
        permission="fs:write",
        description="Delete a file by moving it into the backup directory.",
        inputs={"path": PATH},
        run=_delete_file,
        summary="delete {{args.path}}",
        undo=RESTORE,
        touches=TOUCHES_PATH,
    ),
    Tool(
        name="fs.make_dir",
        effect=Effect.REVERSIBLE,
        permission="fs:write",
        description="Make a directory and its missing parents; one that exists is left as it is.",
        inputs={"path": PATH},
        run=_make_dir,
        summary="make the directory {{args.path}}",
        undo=REMOVE_DIR,
        touches=TOUCHES_TOP,
    ),
    Tool(
        name="fs.move_file",
        effect=Effect.REVERSIBLE,
        permission="fs:write",
        description="Move a file or a directory to a name that is free, in a directory that exists.",
        inputs=MOVE_INPUTS,
        run=_move_file,
        summary="move {{args.source}} to {{args.destination}}",
        undo=UNMOVE,
        touches=TOUCHES_BOTH,
    ),
    Tool(
        name="fs.restore_file",
        effect=Effect.IDEMPOTENT,
        permission="fs:write",
        description="Put back what stood at a path before a write or a deletion, or its absence.",
        inputs=RESTORE_INPUTS,
        run=_restore_file,
        summary="restore {{args.path}}",
        touches=TOUCHES_PATH,
        is_compensation_only=True,
        already_done=("the path is in the state to put back",),
    ),
    Tool(
        name="fs.remove_dir",
        effect=Effect.IDEMPOTENT,
        permission="fs:write",
        description="Remove the directories that a fs.make_dir call made, if they are empty.",
        inputs={
            "path": PATH,
            "created": Field(FieldKind.ARRAY, "The directories made, topmost first.", items=PATH),
        },
        run=_remove_dir,
        summary="remove the directory {{args.path}}",
        touches=TOUCHES_TOP,
        is_compensation_only=True,
        already_done=("none of the directories exists",),
    ),
    Tool(
        name="fs.unmove_file",
        effect=Effect.IDEMPOTENT,
        permission="fs:write",
        description="Move back what a fs.move_file call moved, if its old name is free.",
        inputs={**MOVE_INPUTS, "moved": MOVED},
        run=_unmove_file,
        summary="move {{args.destination}} back to {{args.source}}",
        touches=TOUCHES_BOTH,
        is_compensation_only=True,
        already_done=("the thing stands at its old name",),
    ),
)

CONNECTOR = ConnectorSpec("fs", TOOLS)
