"""What an agent does in a session with one of the servers: lists of a tool and its arguments, to be played anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

Calls: TypeAlias = Sequence[tuple[str, dict[str, Any]]]


def furnish(root: Path) -> None:
    """Lay out the folder that the file session works on."""
    (root / "notes").mkdir(mode=0o750)
    (root / "notes/today.md").write_text("buy milk\ncall home\n")
    (root / "notes/windows.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "notes/private.txt").write_text("mine\n")
    (root / "notes/private.txt").chmod(0o600)
    (root / "empty").touch()
    (root / "bom.txt").write_bytes(b"\xef\xbb\xbfgr\xc3\xbcn \xe2\x98\x83\n")
    (root / "photo.bin").write_bytes(bytes(range(256)))
    (root / "to-today").symlink_to("notes/today.md")
    (root / "archive/2024").mkdir(parents=True)
    (root / "archive/2024/a.txt").write_text("a")


def file_session(root: Path) -> Calls:
    """A session of every tool, in which everything can be undone; paths are absolute, as agents are told to write."""

    def at(path: str) -> str:
        return str(root / path)

    return [
        ("list_allowed_directories", {}),
        ("directory_tree", {"path": at("")}),
        ("read_text_file", {"path": at("notes/today.md")}),
        ("write_file", {"path": at("notes/today.md"), "content": "buy bread\n"}),
        ("write_file", {"path": at("notes/new.md"), "content": "# New\n"}),
        ("edit_file", {"path": at("notes/new.md"), "edits": [{"oldText": "# New", "newText": "# Newer"}]}),
        ("edit_file", {"path": at("notes/windows.txt"), "edits": [{"oldText": "two", "newText": "2"}]}),
        ("edit_file", {"path": at("notes/today.md"), "edits": [{"oldText": "x", "newText": "y"}]}),
        (
            "edit_file",
            {"path": at("notes/today.md"), "edits": [{"oldText": "bread", "newText": "tea"}], "dryRun": True},
        ),
        ("write_file", {"path": at("notes/private.txt"), "content": "yours"}),
        ("write_file", {"path": at("empty"), "content": "\0full\ufeff"}),
        ("write_file", {"path": at("bom.txt"), "content": ""}),
        ("write_file", {"path": at("to-today"), "content": "through a link\n"}),
        ("create_directory", {"path": at("a/b/c")}),
        ("create_directory", {"path": at("archive")}),
        ("create_directory", {"path": at("a/b")}),
        ("write_file", {"path": at("a/b/c/deep.txt"), "content": "deep"}),
        ("move_file", {"source": at("a/b/c/deep.txt"), "destination": at("a/b/up.txt")}),
        ("write_file", {"path": at("a/b/up.txt"), "content": "moved and changed"}),
        ("move_file", {"source": at("photo.bin"), "destination": at("a/photo.bin")}),
        ("move_file", {"source": at("archive/2024"), "destination": at("a/2024")}),
        ("write_file", {"path": at("a/2024/a.txt"), "content": "b"}),
        ("move_file", {"source": at("a"), "destination": at("archive/a")}),
        ("write_file", {"path": at("archive/a/2024/new.txt"), "content": "in a moved directory"}),
        ("move_file", {"source": at("empty"), "destination": at("bom.txt")}),
        ("move_file", {"source": at("gone"), "destination": at("gone too")}),
        ("write_file", {"path": at("notes"), "content": "a directory cannot be written"}),
        ("create_directory", {"path": at("bom.txt/below")}),
        ("read_multiple_files", {"paths": [at("bom.txt"), at("gone")]}),
        ("search_files", {"path": at(""), "pattern": "**/*.txt"}),
        ("list_directory_with_sizes", {"path": at("archive")}),
        ("get_file_info", {"path": at("bom.txt")}),
    ]


# Entities, and relations as (from, kind, to), of the graph that the memory session works on.
FIRST_ENTITIES = [
    {"name": "Ada", "entityType": "person", "observations": ["likes tea", "plays chess", "lives by the sea"]},
    {"name": "Bo", "entityType": "person", "observations": []},
    {"name": "Chess club", "entityType": "club", "observations": ["meets on Mondays"]},
]
FIRST_RELATIONS = [
    {"from": "Ada", "to": "Chess club", "relationType": "member of"},
    {"from": "Bo", "to": "Ada", "relationType": "knows"},
    {"from": "Nobody", "to": "Nowhere", "relationType": "dangles at"},
]
# What the deletion of Bo takes along for good.
LOST_RELATIONS = {("Bo", "knows", "Ada")}


def relation(start: str, kind: str, end: str) -> dict[str, str]:
    """Return a relation as the server takes it."""
    return {"from": start, "to": end, "relationType": kind}


def memory_session() -> Calls:
    """A session of every tool, in which everything can be undone but the relation that Bo's deletion takes along."""
    cy = {"name": "Cy", "entityType": "person", "observations": ["new here"]}
    dee = {"name": "Dee", "entityType": "person", "observations": ["x", "x"]}
    return [
        ("read_graph", {}),
        ("create_entities", {"entities": [cy, {**FIRST_ENTITIES[2], "observations": ["ignored"]}, dee]}),
        ("create_entities", {"entities": []}),
        ("create_relations", {"relations": [relation("Cy", "knows", "Dee"), FIRST_RELATIONS[0]]}),
        ("create_relations", {"relations": [relation("Ghost", "haunts", "Cy")]}),
        (
            "add_observations",
            {
                "observations": [
                    {"entityName": "Ada", "contents": ["likes tea", "sings"]},
                    {"entityName": "Cy", "contents": ["sings", "dances"]},
                    {"entityName": "Ada", "contents": ["sings", "paints"]},
                ]
            },
        ),
        ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["is here"]}]}),
        ("search_nodes", {"query": "sings"}),
        (
            "delete_observations",
            {
                "deletions": [
                    {"entityName": "Ada", "observations": ["plays chess", "never said"]},
                    {"entityName": "Dee", "observations": ["x"]},
                    {"entityName": "Nobody", "observations": ["is here"]},
                ]
            },
        ),
        ("delete_observations", {"deletions": [{"entityName": "Bo", "observations": ["was never there"]}]}),
        ("delete_relations", {"relations": [FIRST_RELATIONS[0], relation("Ada", "never knew", "Bo")]}),
        ("delete_relations", {"relations": [FIRST_RELATIONS[2]]}),
        ("create_relations", {"relations": [relation("Bo", "plays with", "Cy"), FIRST_RELATIONS[0]]}),
        ("delete_entities", {"entityNames": ["Bo", "Was never there"]}),
        ("create_entities", {"entities": [{"name": "Bo", "entityType": "robot", "observations": ["beeps"]}]}),
        ("add_observations", {"observations": [{"entityName": "Bo", "contents": ["boops"]}]}),
        ("delete_entities", {"entityNames": ["Cy", "Bo"]}),
        ("create_entities", {"entities": [cy]}),
        ("create_relations", {"relations": [relation("Cy", "knows", "Dee")]}),
        ("delete_relations", {"relations": [relation("Cy", "knows", "Dee")]}),
        ("open_nodes", {"names": ["Ada", "Cy"]}),
    ]
