"""The documents keep up with the code: what it names is explained, and what they point to exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.core.statuses import RULES
from manifests_registry.core.snapshot import Entry, build_snapshot
from reversi_sdk import validate_manifest
from reversi_sdk.manifests import manifest_checksum, manifest_from_normal
from reversi_sdk.strict_yaml import load_yaml
from reversi_site.schedules import JOBS
from tests.architecture.tracked import is_test, python_files, read, tracked_files
from tests.postgres import REPOSITORY

RECORDS = Path("docs/decisions")
OPERATIONS = Path("docs/operations.md")
MANUAL = Path("docs/writing-manifests.md")
JOURNAL = Path("ledger/README.md")
APPS = ("approvals", "connectors", "gateway", "ledger", "manifests_registry", "reversi_sdk", "rollback")
SECTIONS = ["Context", "Decision", "Consequences", "Rejected", "Not built yet"]

# The brackets keep this pattern from being a number itself.
NUMBER = re.compile(r"\b[D]([0-9]{1,3})\b")
SETTING = re.compile(r"\bREVERSI_[A-Z_]+[A-Z]\b")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
# What tells the tests themselves where they are; nobody sets it to run Reversi.
FOR_TESTS = frozenset({"REVERSI_REQUIRE_POSTGRES"})


def text_of(path: Path) -> str:
    return (REPOSITORY / path).read_text(encoding="utf-8")


def documents() -> tuple[Path, ...]:
    return tuple(path for path in tracked_files() if path.suffix == ".md")


def records() -> tuple[Path, ...]:
    return tuple(path for path in documents() if path.parent == RECORDS and path.name != "README.md")


def record_number(path: Path) -> int:
    return int(path.name.partition("-")[0])


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def headings(text: str) -> list[str]:
    return [title for _, title in HEADING.findall(FENCE.sub("", text))]


def anchors(file: Path) -> frozenset[str]:
    titles = headings(file.read_text(encoding="utf-8"))
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def test_numbers_named_anywhere_have_a_record() -> None:
    known = {record_number(path) for path in records()}
    named = {
        (str(path), int(number))
        for path in (*python_files(), *documents())
        for number in NUMBER.findall(read(path) or "")
    }

    assert sorted((path, number) for path, number in named if number not in known) == []


@pytest.mark.parametrize("path", records(), ids=lambda path: path.stem)
def test_record_has_its_number_and_sections(path: Path) -> None:
    titles = headings(text_of(path))

    assert titles[0].startswith(f"D{record_number(path)}: ")
    assert titles[1:] == SECTIONS


def test_index_lists_every_record_once_with_its_title() -> None:
    rows = re.findall(r"^\| \[D(\d+)\]\((\S+)\) \| (.+) \|$", text_of(RECORDS / "README.md"), re.MULTILINE)

    assert rows == [
        (str(record_number(path)), path.name, headings(text_of(path))[0].partition(": ")[2]) for path in records()
    ]


def broken_links(file: Path) -> Iterator[str]:
    for target in LINK.findall(without_code(file.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, place = target.partition("#")
        linked = file.parent / name if name else file
        if not linked.exists() or (place and place not in anchors(linked)):
            yield target


def test_relative_links_lead_somewhere() -> None:
    broken = {str(path): list(broken_links(REPOSITORY / path)) for path in documents()}

    assert {path: links for path, links in broken.items() if links} == {}


def test_broken_links_are_noticed(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("# A place\n[here](#a-place) [gone](#gone) [file](other.md) `[code](no.md)` [web](https://x.org)\n")

    assert list(broken_links(file)) == ["#gone", "other.md"]


def settings_read() -> frozenset[str]:
    texts = (read(path) or "" for path in python_files() if not is_test(path))
    return frozenset(name for text in texts for name in SETTING.findall(text))


def test_settings_are_documented_and_documented_settings_exist() -> None:
    documented = frozenset(SETTING.findall(text_of(OPERATIONS)))

    assert documented == settings_read() - FOR_TESTS


def test_scheduled_jobs_are_documented() -> None:
    text = text_of(OPERATIONS)

    assert [job.value for job in JOBS if f"| `{job.value}` |" not in text] == []


def event_kinds() -> frozenset[str]:
    trees = [ast.parse(read(path) or "") for path in python_files() if not is_test(path)]
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    written = {kind for call in calls for kind in kinds_in(call)}
    return frozenset(written | {rule.event for rule in RULES.values()})


def kinds_in(call: ast.Call) -> Iterator[str]:
    """Yield the kind that a call writes: of a draft, or as an argument of one of the functions that append."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    arguments = list(call.args[:1]) if name == "EventDraft" else []
    if name in ("EventDraft", "record_act", "record_note"):
        arguments += [keyword.value for keyword in call.keywords if keyword.arg == "kind"]
    for argument in arguments:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def test_event_kinds_are_found_where_they_are_written() -> None:
    source = "EventDraft('a', 1)\nrecord_note(kind='b')\nrecord_act(kind='c', data={})\nother(kind='d')\nEventDraft(e)"
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]

    assert sorted(kind for call in calls for kind in kinds_in(call)) == ["a", "b", "c"]


def test_event_kinds_are_documented_and_documented_kinds_exist() -> None:
    section = text_of(JOURNAL).partition("\n## Events\n")[2].partition("\n## ")[0]
    documented = frozenset(re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE))

    assert documented == event_kinds()


def test_apps_have_a_page() -> None:
    assert [app for app in APPS if not (REPOSITORY / app / "README.md").is_file()] == []


def examples() -> list[tuple[str, str]]:
    """Return the YAML examples of the manual by the heading they stand under."""
    title, found = "", []
    for piece in re.split(r"^(?=#+ )", text_of(MANUAL), flags=re.MULTILINE):
        title = piece.partition("\n")[0].lstrip("# ") or title
        found += [(title, body) for language, body in FENCE.findall(piece) if language == "yaml"]
    return found


def declared(body: str) -> list[dict[str, object]]:
    value = load_yaml(body.encode(), name=str(MANUAL)).value
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(("title", "body"), examples(), ids=[title for title, _ in examples()])
def test_example_of_the_manual_is_valid(title: str, body: str) -> None:
    assert [validate_manifest(manifest)[1] for manifest in declared(body)] == [[] for _ in declared(body)]


def test_examples_of_the_manual_stand_together() -> None:
    entries = [
        Entry(manifest_from_normal(normal), normal, manifest_checksum(normal), title)
        for title, body in examples()
        for normal in (validate_manifest(manifest)[0] for manifest in declared(body))
        if normal is not None
    ]

    _, problems = build_snapshot(entries)

    assert problems == ()
