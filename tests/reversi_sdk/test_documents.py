"""Strict YAML, strict JSON, and manifest files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reversi_sdk.documents import Document, DocumentInvalid
from reversi_sdk.manifest_files import load_manifests
from reversi_sdk.strict_json import load_json
from reversi_sdk.strict_yaml import YamlInvalid, load_yaml
from tests.reversi_sdk.sdk_factories import EXAMPLE, flat, reading
from tests.reversi_sdk.test_values import JSON

SCALARS: dict[str, Any] = {
    "true": True, "FALSE": False, "null": None, "~": None, "": None, "on": "on", "no": "no", "Yes": "Yes", "y": "y",
    "5": 5, "-5": -5, "+5": 5, "017": 17, "0o17": 15, "0x1F": 31, "0b1": "0b1", "1_000": "1_000",
    "12:30:45": "12:30:45", "2020-01-01": "2020-01-01", "1.5": 1.5, ".5": 0.5, "1e3": 1000.0, "1.": 1.0, "-0x1": "-0x1",
    "'5'": "5", '"true"': "true", "!!str 5": "5", "! 5": "5", "|\n  x\n": "x\n", "=": "=", "<<": "<<",
}  # fmt: skip


@pytest.mark.parametrize("text", SCALARS)
def test_load_yaml_resolves_the_core_schema_only(text: str) -> None:
    value = load_yaml(f"a: {text}".encode(), name="f").value["a"]

    assert value == SCALARS[text]
    assert type(value) is type(SCALARS[text])


def _bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    return "\n".join(lines)


# Each: the text, line, column, a part of the message.
BAD_YAML: dict[str, tuple[str | bytes, int, int, str]] = {
    "key twice": ("a: 1\nb:\n  c: 1\n  c: 2", 4, 3, "written twice"),
    "number as key": ("a: 1\n5: x", 2, 1, "write it in quotes"),
    "boolean as key": ("true: x", 1, 1, "write it in quotes"),
    "list as key": ("? [a]\n: b", 1, 3, "a key must be a text"),
    "object as key": ("{{a: 1}: b}", 1, 2, "a key must be a text"),
    "alias as key": ("a: &x y\n*x : b", 2, 1, "cannot be an alias"),
    "anchor on a key": ("&x a: y", 1, 1, "cannot be an anchor"),
    "infinite": ("a: .inf", 1, 4, "NaN and infinite"),
    "nan": ("a: .NaN", 1, 4, "NaN and infinite"),
    "overflow": ("a: 1e999", 1, 4, "NaN and infinite"),
    "long number": ("a: " + "9" * 5000, 1, 4, "too long"),
    "tag": ("a: !!python/object:os.system x", 1, 4, "not allowed"),
    "own tag": ("- !foo {a: 1}", 1, 3, "tag !foo"),
    "date tag": ("- !!timestamp 2020-01-01", 1, 3, "not allowed"),
    "two documents": ("a: 1\n---\nb: 2", 2, 1, "more than one document"),
    "unknown alias": ("a: *x", 1, 4, "no anchor"),
    "alias in its anchor": ("a: &x [*x]", 1, 8, "inside its own anchor"),
    "explosion": (_bomb(), 4, 45, "repeat more than"),
    "alias too deep": ("a: &x " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*x" + "]" * 40, 2, 44, "nested deeper"),
    "too deep": ("[" * 65 + "]" * 65, 1, 65, "nested deeper than 64"),
    "a million brackets": ("[" * 1_000_000, 1, 1001, ""),
    "broken": ("a: [1,\nb: ", 2, 4, "did not find expected"),
    "tab": ("a:\n\tb: 1", 2, 1, ""),
    "nul": ("a: \0", 1, 4, "NUL"),
    "escaped nul": ('a: "\\0"', 1, 4, "NUL"),
    "control character": ("a: é\x07", 1, 5, "control characters"),
    "escaped surrogate": ('a: "\\ud800"', 1, 7, ""),
    "not utf-8": (b"a: b\nc: \xff", 2, 4, "not UTF-8"),
    "utf-16": ("a: b".encode("utf-16"), 1, 1, "not UTF-8"),
    "too large": ("a: " + "x" * 1024 * 1024, 1, 1, "larger than"),
}  # fmt: skip
BAD_JSON: dict[str, tuple[str | bytes, int, int, str]] = {
    "empty": ("", 1, 1, "expected a value"),
    "key twice": ('{"a": 1,\n "a": 2}', 2, 2, "written twice"),
    "trailing comma": ("[1,]", 1, 4, "expected a value"),
    "no comma": ("[1 2]", 1, 4, "expected , or ]"),
    "no comma in object": ('{"a": 1 "b": 2}', 1, 9, "expected , or }"),
    "no colon": ('{"a" 1}', 1, 6, "expected :"),
    "bare key": ("{a: 1}", 1, 2, "key in double quotes"),
    "nan": ("[NaN]", 1, 2, "expected a value"),
    "overflow": ("[1e999]", 1, 2, "NaN and infinite"),
    "leading zero": ("01", 1, 2, "follows the end"),
    "two values": ("1\n2", 2, 1, "follows the end"),
    "long number": ("9" * 5000, 1, 1, "too long"),
    "surrogate": ('"\\ud800"', 1, 1, "lone surrogate"),
    "nul": ('"\\u0000"', 1, 1, "NUL"),
    "line end in text": ('"a\nb"', 1, 1, "control character"),
    "open text": ('["a', 1, 2, "does not end"),
    "bad escape": ('"\\x"', 1, 1, "unknown escape"),
    "too deep": ("[" * 65, 1, 65, "nested deeper than 64"),
    "a million brackets": ("[" * 1_000_000, 1, 65, "nested deeper than 64"),
    "not utf-8": (b'"\xff"', 1, 2, "not UTF-8"),
}


def _refusal(load: Callable[..., Document], text: str | bytes) -> DocumentInvalid:
    with pytest.raises(DocumentInvalid) as refused:
        load(text if isinstance(text, bytes) else text.encode(), name="some.file")
    return refused.value


@pytest.mark.parametrize(("text", "line", "column", "message"), BAD_YAML.values(), ids=BAD_YAML.keys())
def test_load_yaml_refuses_with_line_and_column(text: str | bytes, line: int, column: int, message: str) -> None:
    error = _refusal(load_yaml, text)

    assert (error.line, error.column) == (line, column)
    assert message in error.problem
    assert str(error).startswith(f"some.file:{line}:{column}: ")


@pytest.mark.parametrize(("text", "line", "column", "message"), BAD_JSON.values(), ids=BAD_JSON.keys())
def test_load_json_refuses_with_line_and_column(text: str | bytes, line: int, column: int, message: str) -> None:
    error = _refusal(load_json, text)

    assert (error.line, error.column) == (line, column)
    assert message in error.problem


@given(JSON)
def test_load_json_reads_what_json_writes(value: Any) -> None:
    text = json.dumps(value)
    if "\\u0000" not in text:
        assert load_json(text.encode(), name="f").value == value


@given(st.binary(max_size=60))
def test_load_yaml_refuses_or_reads_any_bytes(data: bytes) -> None:
    places: list[int] = []
    try:
        load_yaml(data, name="f")
    except YamlInvalid as error:
        places.append(error.line)
    assert all(line >= 1 for line in places)


@given(st.text(alphabet='{}[]:,"\\u0019eE+-. \ntrue', max_size=40))
def test_load_json_refuses_or_agrees_with_json(text: str) -> None:
    try:
        value = load_json(text.encode(), name="f").value
    except DocumentInvalid:
        return
    assert json.loads(text) == value


def test_load_yaml_reads_aliases_as_copies() -> None:
    value = load_yaml(b"a: &x {l: [1]}\nb: *x\nc: &y 5\nd: *y", name="f").value
    value["b"]["l"].append(2)

    assert value == {"a": {"l": [1]}, "b": {"l": [1, 2]}, "c": 5, "d": 5}


def test_load_yaml_reads_an_empty_document_as_null() -> None:
    assert load_yaml(b"# nothing\n", name="f").value is None
    assert load_yaml(b"", name="f").locate(("a",)) == (1, 1)


def test_load_yaml_accepts_a_byte_order_mark() -> None:
    assert load_yaml(b"\xef\xbb\xbfa: 1", name="f").value == {"a": 1}
    assert load_json(b"\xef\xbb\xbf[1]", name="f").value == [1]


def test_load_yaml_reads_the_same_without_the_compiled_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    text = yaml.safe_dump(EXAMPLE).encode()
    compiled = load_yaml(text, name="f").value
    monkeypatch.setattr("reversi_sdk.strict_yaml._LOADER", yaml.SafeLoader)

    assert load_yaml(text, name="f").value == compiled == EXAMPLE
    assert _refusal(load_yaml, "a: é\x07").column == 5


PLACES = {
    (): (1, 1),
    ("a",): (1, 1),
    ("a", 1): (3, 5),
    ("a", 1, "c"): (3, 5),
    ("a", 1, "missing"): (3, 5),
    ("b",): (4, 1),
    ("b", "d"): (4, 5),
}


@pytest.mark.parametrize("path", PLACES)
def test_document_locates_a_key_or_what_is_around_it(path: tuple[str | int, ...]) -> None:
    document = load_yaml(b"a:\n  - x\n  - c: 1\nb: {d: 2}", name="f")

    assert document.locate(path) == PLACES[path]


def test_document_locates_in_json() -> None:
    document = load_json(b'{\n  "a": [1,\n    {"b": 2}]}', name="f")

    assert [document.locate(path) for path in [("a",), ("a", 1), ("a", 1, "b"), ("x",)]] == [
        (2, 3),
        (3, 5),
        (3, 6),
        (1, 1),
    ]


def _written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def test_load_manifests_reads_the_documents_example(tmp_path: Path) -> None:
    file = _written(tmp_path, payments__yaml=yaml.safe_dump(EXAMPLE, sort_keys=False)) / "payments.yaml"

    loaded = load_manifests(file)

    assert loaded.problems == ()
    assert [entry.manifest.tool for entry in loaded.manifests] == [data["tool"] for data in EXAMPLE]
    assert [entry.source for entry in loaded.manifests][:2] == [f"{file}:1", f"{file}:5"]
    assert len(loaded.manifests[0].checksum) == 64


def test_load_manifests_walks_a_folder_in_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    _written(tmp_path / "sub", c__json=json.dumps(reading(tool="c")))
    _written(tmp_path, b__yml="tool: b\neffect: read_only\npermission: p", a__YAML=json.dumps([reading(tool="a")]))
    _written(tmp_path, readme__md="no manifest", __hidden__yaml="{")

    loaded = load_manifests(tmp_path)

    assert [entry.manifest.tool for entry in loaded.manifests] == ["a", "b", "c"]
    assert loaded.problems == ()


def test_load_manifests_places_each_problem(tmp_path: Path) -> None:
    text = "- tool: a\n  effect: read_only\n  permission: p\n- tool: b\n  efect: x\n  permission: p p\n- 5\n"

    loaded = load_manifests(_written(tmp_path, m__yaml=text) / "m.yaml")

    assert [entry.manifest.tool for entry in loaded.manifests] == ["a"]
    assert [(problem.line, problem.column, problem.tool, problem.path) for problem in loaded.problems] == [
        (5, 3, "b", "efect"),
        (6, 3, "b", "permission"),
        (4, 3, "b", "effect"),
        (7, 3, None, ""),
    ]


def test_load_manifests_keeps_a_code(tmp_path: Path) -> None:
    data = flat(compensation={"tool": "shop.order"})

    loaded = load_manifests(_written(tmp_path, m__json=json.dumps(data)) / "m.json")

    assert [problem.code for problem in loaded.problems] == ["effect/operation_self"]


def test_load_manifests_goes_on_after_a_broken_file(tmp_path: Path) -> None:
    _written(tmp_path, a__yaml="a: [", b__json=json.dumps(reading()))

    loaded = load_manifests(tmp_path)

    assert len(loaded.manifests) == 1
    assert [Path(problem.file).name for problem in loaded.problems] == ["a.yaml"]


@pytest.mark.parametrize("text", ["", "# only a comment", "[]"])
def test_load_manifests_refuses_a_file_without_manifest(tmp_path: Path, text: str) -> None:
    loaded = load_manifests(_written(tmp_path, m__yaml=text) / "m.yaml")

    assert [problem.message for problem in loaded.problems] == ["holds no manifest"]


def _missing(folder: Path) -> Path:
    return folder / "nowhere"


def _empty(folder: Path) -> Path:
    return folder


def _other_kind(folder: Path) -> Path:
    return _written(folder, m__txt="x") / "m.txt"


def _nul_in_name(folder: Path) -> Path:
    return folder / "a\0b"


def _long_name(folder: Path) -> Path:
    return folder / ("x" * 5000)


def _link_to_itself(folder: Path) -> Path:
    (folder / "a.yaml").symlink_to(folder / "a.yaml")
    return folder


def _link_upwards(folder: Path) -> Path:
    (folder / "sub").symlink_to(folder)
    return folder


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "a.yaml")
    return folder


def _deep(folder: Path) -> Path:
    inner = folder
    for _ in range(70):
        inner = inner / "d"
    inner.mkdir(parents=True)
    return folder


def _too_large(folder: Path) -> Path:
    return _written(folder, m__yaml="#" * (1024 * 1024 + 1)) / "m.yaml"


STRANGE_PATHS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (_missing, "no such file or folder"),
    "empty folder": (_empty, "the folder holds no manifest file"),
    "another kind of file": (_other_kind, "is no manifest file"),
    "nul in the name": (_nul_in_name, ""),
    "long name": (_long_name, "file name too long"),
    "link to itself": (_link_to_itself, "too many levels of symbolic links"),
    "link upwards": (_link_upwards, "is a link to a folder around it"),
    "pipe": (_pipe, "is no regular file"),
    "deep folders": (_deep, "is nested deeper than 64"),
    "too large": (_too_large, "larger than"),
}


@pytest.mark.parametrize(("make", "message"), STRANGE_PATHS.values(), ids=STRANGE_PATHS.keys())
def test_load_manifests_reports_a_strange_path(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    loaded = load_manifests(make(tmp_path))

    assert loaded.manifests == ()
    assert len(loaded.problems) == 1
    assert message in loaded.problems[0].message


@contextmanager
def _as_nobody() -> Iterator[None]:
    # Root may read everything, so for a moment the process is someone else.
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, which a test's own is not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_load_manifests_reports_what_it_may_not_read(open_folder: Path) -> None:
    _written(open_folder, a__yaml="x")
    (open_folder / "a.yaml").chmod(0)
    (open_folder / "sub").mkdir(mode=0)

    with _as_nobody():
        loaded = [load_manifests(path) for path in (open_folder / "a.yaml", open_folder / "sub", open_folder)]

    assert [entry for item in loaded for entry in item.manifests] == []
    assert {problem.message for item in loaded for problem in item.problems} == {"permission denied"}
