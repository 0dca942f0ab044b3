"""Drafts: what is claimed, what is guessed, what is only proposed; and that nothing a server says breaks the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from manifests_registry.core.drafting import Drafting, draft_manifests
from manifests_registry.core.drafting.writing import DOCUMENT_LIMIT_BYTES
from manifests_registry.core.validation import validate_path
from reversi_sdk.manifests import validate_manifest
from reversi_sdk.strict_yaml import load_yaml

DATA = Path(__file__).with_name("data")
SERVERS = ("filesystem", "memory")
READ = {"readOnlyHint": True}
WRITE = {"readOnlyHint": False}

Tool = dict[str, Any]


def offered(server: str) -> list[Tool]:
    tools: list[Tool] = json.loads((DATA / f"{server}.tools.json").read_text(encoding="utf-8"))["tools"]
    return tools


def tool(name: object, *, takes: str = "", needs: str = "", gives: str | None = None, **more: Any) -> Tool:
    """A tool whose inputs and outputs are given by name, all of them strings."""
    schema = {"type": "object", "properties": members(f"{takes} {needs}"), "required": needs.split()}
    answer = {} if gives is None else {"outputSchema": {"type": "object", "properties": members(gives)}}
    return {"name": name, "inputSchema": schema, **answer, **more}


def members(names: str) -> dict[str, Any]:
    return {name: {"type": "string"} for name in names.split()}


def draft(*tools: Tool, **more: Any) -> Drafting:
    return draft_manifests(tools, upstream="shop", **more)


def manifests(drafting: Drafting) -> list[dict[str, Any]]:
    return [entry for document in drafting.documents for entry in load_yaml(document.encode(), name="drafts").value]


def proposed(drafting: Drafting, name: str) -> dict[str, Any]:
    """The fields that are proposed for a tool, as they read when their comment signs are taken away."""
    proposal = next(each.proposal for each in drafting.drafts if each.tool == name)
    assert proposal is not None
    assert all(f"\n  # {line}\n" in drafting.documents[0] for line in proposal.lines)
    fields: dict[str, Any] = yaml.safe_load("\n".join(proposal.lines))
    return fields


def valid_with(drafting: Drafting, name: str) -> bool:
    """Whether the draft is a valid manifest with what is proposed in the place of effect and approval."""
    entry = next(each for each in manifests(drafting) if each["tool"] == name)
    kept = {field: value for field, value in entry.items() if field not in ("effect", "approval")}
    return validate_manifest(kept | proposed(drafting, name))[1] == []


def golden(server: str) -> str:
    (document,) = draft_manifests(offered(server), upstream=server).documents
    return document


@pytest.mark.parametrize("server", SERVERS)
def test_drafts_of_a_server_stand_as_they_are_kept(server: str) -> None:
    path = DATA / f"{server}.drafts.yaml"

    assert path.read_text(encoding="utf-8") == golden(server), (
        "run `python -m tests.manifests_registry.core.test_drafting`"
    )


@pytest.mark.parametrize("server", SERVERS)
def test_drafts_of_a_server_are_valid(server: str) -> None:
    validation = validate_path(DATA / f"{server}.drafts.yaml")

    assert (validation.count, validation.problems) == (len(offered(server)), ())


@pytest.mark.parametrize(
    ("name", "annotations", "effect", "words"),
    [
        ("look", READ, "read_only", "from annotations: readOnlyHint true, the server's own claim"),
        ("look", {**READ, "destructiveHint": False, "idempotentHint": True}, "read_only", "readOnlyHint true"),
        ("get_delete_status", READ, "read_only", "readOnlyHint true"),
        ("updates", READ, "read_only", "readOnlyHint true"),
        ("look", {**READ, "destructiveHint": True}, "irreversible", "annotations contradict each other"),
        ("delete_note", READ, "irreversible", 'the name says "delete"'),
        ("shop_deleteNote", READ, "irreversible", 'the name says "delete"'),
        ("crm.notes/delete-note", READ, "irreversible", 'the name says "delete"'),
        ("get_note", WRITE, "irreversible", "from annotations: readOnlyHint false"),
        ("get_note", {"idempotentHint": True}, "irreversible", "no annotation says that it only reads"),
        ("get_note", {"destructiveHint": False}, "irreversible", "no annotation says that it only reads"),
        ("get_note", {"readOnlyHint": "true"}, "irreversible", "no annotation says that it only reads"),
        ("get_note", {"readOnlyHint": 1}, "irreversible", "no annotation says that it only reads"),
        ("get_note", [], "irreversible", "no annotation says that it only reads"),
        ("get_note", None, "irreversible", "no annotation says that it only reads"),
    ],
)
def test_effect_is_never_weaker_than_what_is_declared(name: str, annotations: object, effect: str, words: str) -> None:
    drafting = draft(tool(name, annotations=annotations))

    (manifest,) = manifests(drafting)
    assert (manifest["effect"], manifest.get("approval")) == (effect, "always" if effect == "irreversible" else None)
    assert f"  effect: {effect} # " in drafting.documents[0]
    assert words in drafting.documents[0]


def test_hints_that_are_not_used_are_told() -> None:
    drafting = draft(tool("put", annotations={**WRITE, "destructiveHint": False, "idempotentHint": True}))

    assert "# the server also hints: destructiveHint false, idempotentHint true; a hint" in drafting.documents[0]
    assert "hints" not in draft(tool("put", annotations=WRITE)).documents[0]


def test_everything_that_is_guessed_has_its_comment_beside_it() -> None:
    document = draft(tool("put", needs="id", description="Put it.")).documents[0]

    lines = [line for line in document.splitlines() if line and not line.startswith("#")]
    uncommented = {line.split(":")[0].strip(" -") for line in lines if " # " not in line}
    assert uncommented == {"tool", "description"}


def test_draft_is_a_draft_with_the_schema_it_was_written_for() -> None:
    first, other = manifests(draft(tool("get", needs="id", annotations=READ), tool("put", needs="id value")))

    assert (first["status"], other["status"]) == ("draft", "draft")
    assert re.fullmatch("sha256:[0-9a-f]{16}", first["schema_hash"])
    assert first["schema_hash"] != other["schema_hash"]
    assert (first["permission"], other["permission"]) == ("shop:read", "shop:write")


def test_schema_that_cannot_be_hashed_is_left_out() -> None:
    unsafe = {"type": "object", "properties": {"n": {"maximum": 2**60}}}

    drafting = draft({"name": "a", "inputSchema": unsafe}, {"name": "b"}, {"name": "c", "inputSchema": []})

    assert [manifest.get("schema_hash") for manifest in manifests(drafting)] == [None, None, None]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("two words", "no manifest can have this name"),
        ("a/../b", "no manifest can have this name"),
        ("", "no manifest can have this name"),
        ("näme", "no manifest can have this name"),
        ("a\n- tool: b", "no manifest can have this name"),
        ("x" * 129, "no manifest can have this name"),
        ("reversi.halt", "the gateway keeps names like this"),
        (None, "has no name"),
        (7, "has no name"),
    ],
)
def test_tool_that_no_manifest_can_name_is_told(name: object, reason: str) -> None:
    drafting = draft(tool("good"), tool(name))

    assert [manifest["tool"] for manifest in manifests(drafting)] == ["good"]
    assert [left.reason.startswith(reason) for left in drafting.left_out] == [True]
    assert reason in drafting.documents[0].partition("# Without a draft:")[2]


def test_tool_offered_twice_is_drafted_once() -> None:
    drafting = draft(tool("get", description="first"), tool("get", description="second"), tool("GET"))

    assert [(each["tool"], each.get("description")) for each in manifests(drafting)] == [
        ("get", "first"),
        ("GET", None),
    ]
    assert [left.reason for left in drafting.left_out] == ["is offered twice; the first is drafted"]


def test_tool_with_a_manifest_is_left_out() -> None:
    drafting = draft(tool("get"), tool("put"), declared={"put"})

    assert [each.tool for each in drafting.drafts] == ["get"]
    assert [(left.name, left.reason) for left in drafting.left_out] == [("put", "has a manifest already")]


def test_nothing_to_draft_makes_no_document() -> None:
    assert draft().documents == ()
    assert draft(tool("two words")).documents == ()


@pytest.mark.parametrize("name", ["true", "NULL", "no", "y", "1e3", "0x1F", "12:30", "-", ":", ".5", "a:"])
def test_name_that_yaml_takes_for_something_else_is_quoted(name: str) -> None:
    (document,) = draft(tool(name)).documents

    assert [entry["tool"] for entry in yaml.safe_load(document)] == [name]
    assert [entry["tool"] for entry in load_yaml(document.encode(), name="x").value] == [name]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\n- tool: evil\n  effect: read_only", "one - tool: evil effect: read_only"),
        ("ends here\n---\nnext: 1\n...\n", "ends here --- next: 1 ..."),
        ('"quoted" \\ and # no comment: {a: [b', '"quoted" \\ and # no comment: {a: [b'),
        ("\u202egnissim\u2066", "\\u{202e}gnissim\\u{2066}"),
        ("a\x00b\x1b[31mc\x7f", "a\\u{0}b\\u{1b}[31mc\\u{7f}"),
        ("line\u2028break\u0085here", "line\\u{2028}break\\u{85}here"),
        ("half a \ud83d character, \ufffe and \ufeff", "half a \\u{d83d} character, \\u{fffe} and \\u{feff}"),
        ("  many \t spaces  ", "many spaces"),
        ("*&!%@`", "*&!%@`"),
        ("日本語 😀", "日本語 😀"),
    ],
)
@pytest.mark.parametrize("padding", ["", " and more words" * 20])
def test_description_reads_back_as_it_is_shown(text: str, shown: str, padding: str) -> None:
    (manifest,) = manifests(draft(tool("get", description=f"x {text}{padding}")))

    assert manifest["description"] == f"x {shown}{padding}"


@given(st.lists(st.text(max_size=300), max_size=3), st.text(max_size=30))
def test_no_text_of_a_server_breaks_the_file(descriptions: Sequence[str], name: str) -> None:
    tools = [tool(f"tool{index}", description=text) for index, text in enumerate(descriptions)]

    drafting = draft(*tools, tool("last"), tool(name, needs=name))

    names = [manifest["tool"] for manifest in manifests(drafting)]
    assert names == [each.tool for each in drafting.drafts]
    assert all(validate_manifest(manifest)[1] == [] for manifest in manifests(drafting))
    assert yaml.safe_load(drafting.documents[0]) == manifests(drafting)
    assert all(line.isprintable() for line in drafting.documents[0].split("\n"))


def test_long_description_is_shortened_and_says_so() -> None:
    drafting = draft(tool("get", description="word " * 1000))

    (manifest,) = manifests(drafting)
    assert (len(manifest["description"]) <= 600, manifest["description"][-1]) == (True, "…")
    assert "  description: >- # shortened\n" in drafting.documents[0]


@pytest.mark.parametrize("description", [None, 7, "", " \n "])
def test_description_that_says_nothing_is_left_out(description: object) -> None:
    (manifest,) = manifests(draft(tool("get", description=description)))

    assert "description" not in manifest


def test_hundreds_of_tools_make_files_that_can_be_read_back(tmp_path: Path) -> None:
    drafting = draft(*(tool(f"tool_{index}", description="𝄞 " * 400) for index in range(600)), *[tool("no name")] * 200)

    for index, document in enumerate(drafting.documents):
        (tmp_path / f"{index}.yaml").write_text(document, encoding="utf-8")
    validation = validate_path(tmp_path)
    assert (validation.count, validation.problems) == (600, ())
    assert len(drafting.documents) > 1
    assert max(len(document.encode()) for document in drafting.documents) < DOCUMENT_LIMIT_BYTES + 64 * 1024
    assert drafting.documents[-1].endswith("#   and 100 more\n")
    assert "Without a draft" not in drafting.documents[0]


def test_drafting_is_the_same_every_time() -> None:
    tools = offered("memory")

    assert draft_manifests(tools, upstream="m") == draft_manifests(json.loads(json.dumps(tools)), upstream="m")


def test_pair_is_proposed_with_what_the_answer_names() -> None:
    drafting = draft(tool("create_note", needs="text", gives="note_id text"), tool("delete_note", needs="note_id"))

    assert proposed(drafting, "create_note") == {
        "effect": "reversible",
        "compensation": {"tool": "delete_note", "argument_map": {"note_id": "$result.note_id"}},
    }
    assert valid_with(drafting, "create_note")


@pytest.mark.parametrize(
    ("forward", "back"),
    [
        ("add_tag", "remove_tag"),
        ("createNote", "destroyNote"),
        ("crm.create_note", "crm.delete_notes"),
        ("github_create_issue", "github_delete_issue"),
        ("lock-file", "unlock-file"),
        ("enable_rule", "disable_rule"),
    ],
)
def test_pair_is_found_by_its_names(forward: str, back: str) -> None:
    drafting = draft(tool(forward, needs="id"), tool(back, needs="id"))

    assert proposed(drafting, forward)["compensation"] == {"tool": back, "argument_map": {"id": "$args.id"}}
    assert valid_with(drafting, forward)


@pytest.mark.parametrize(
    ("undo", "mapped"),
    [
        (tool("delete_note", needs="note_id"), {"note_id": "$result.id"}),
        (tool("delete_note", needs="path confirm idempotency_key"), {"path": "$args.path"}),
        (tool("delete_note", takes="path force"), {"path": "$args.path"}),
        (tool("delete_note", needs="path reason"), {"path": "$args.path", "reason": "FILL_IN"}),
    ],
)
def test_pair_maps_what_the_undo_takes(undo: Tool, mapped: Mapping[str, str]) -> None:
    drafting = draft(tool("create_note", needs="path"), undo)

    assert proposed(drafting, "create_note")["compensation"]["argument_map"] == mapped


def test_proposal_that_lacks_an_argument_is_no_valid_manifest_until_it_is_completed() -> None:
    drafting = draft(tool("create_note", needs="path"), tool("delete_note", needs="reason"))

    assert not valid_with(drafting, "create_note")


def test_argument_of_another_type_is_not_mapped() -> None:
    undo = tool("delete_note")
    undo["inputSchema"] = {"properties": {"path": {"type": "array"}}, "required": ["path"]}

    drafting = draft(tool("create_note", needs="path"), undo)

    assert proposed(drafting, "create_note")["compensation"]["argument_map"] == {"path": "FILL_IN"}


@pytest.mark.parametrize(
    "tools",
    [
        [tool("delete_note", needs="id"), tool("create_note", needs="id")],
        [tool("create_note", needs="id"), tool("delete_page", needs="id")],
        [tool("a.create_note", needs="id"), tool("b.delete_note", needs="id")],
        [tool("create_note", needs="id"), tool("delete_note")],
        [tool("create_note", needs="id"), tool("read_note", needs="id", annotations=READ)],
        [tool("create_note", needs="id"), {"name": "delete_note", "inputSchema": {"required": ["a b"]}}],
        [tool("update_note", needs="id text"), tool("get_note", needs="id")],
        [tool("update_note", needs="id text"), tool("get_note", needs="id version", annotations=READ)],
        [tool("update_note", needs="id text"), tool("get_note", needs="id", gives="title", annotations=READ)],
        [tool("update_note", needs="id"), tool("get_note", needs="id", annotations=READ)],
        [tool("update_note", needs="id text"), tool("get_note", annotations=READ)],
        [tool("copy_file", needs="source destination")],
        [tool("move_file", needs="source target")],
        [tool("get_move", needs="source destination", annotations=READ)],
        [tool("move_file", needs="source destination confirm")],
    ],
)
def test_nothing_is_proposed_where_nothing_is_obvious(tools: Sequence[Tool]) -> None:
    drafting = draft(*tools)

    assert drafting.drafts[0].proposal is None


def test_pair_is_never_proposed_for_the_one_that_removes() -> None:
    drafting = draft(tool("create_note", needs="id"), tool("delete_note", needs="id"))

    assert [each.proposal is not None for each in drafting.drafts] == [True, False]


@pytest.mark.parametrize(
    ("name", "needs", "mapped"),
    [
        ("move_file", "source destination", {"source": "$args.destination", "destination": "$args.source"}),
        ("rename_note", "old_name new_name", {"old_name": "$args.new_name", "new_name": "$args.old_name"}),
        ("board.moveCard", "card from to", {"from": "$args.to", "to": "$args.from", "card": "$args.card"}),
    ],
)
def test_move_is_proposed_as_its_own_inverse(name: str, needs: str, mapped: Mapping[str, str]) -> None:
    drafting = draft(tool(name, needs=needs))

    compensation = proposed(drafting, name)["compensation"]
    assert compensation == {"tool": name, "self_inverse": True, "argument_map": mapped}
    assert valid_with(drafting, name)


@pytest.mark.parametrize(("gives", "remark"), [("text", ""), (None, " # guessed: the answer has no declared form")])
def test_old_value_is_proposed_where_it_can_be_read_and_written(gives: str | None, remark: str) -> None:
    drafting = draft(tool("update_note", needs="id text"), tool("get_note", needs="id", gives=gives, annotations=READ))

    assert proposed(drafting, "update_note") == {
        "effect": "reversible",
        "before": {"tool": "get_note", "arguments": {"id": "$args.id"}},
        "compensation": {
            "tool": "update_note",
            "self_inverse": True,
            "argument_map": {"id": "$args.id", "text": "$before.text"},
        },
    }
    assert f"  #     text: $before.text{remark}\n" in drafting.documents[0]
    assert valid_with(drafting, "update_note")


if __name__ == "__main__":
    for name in SERVERS:
        (DATA / f"{name}.drafts.yaml").write_text(golden(name), encoding="utf-8")
