"""References into a call: one meaning, two spellings (D3, D37).

`$args.a.b` and `request.a.b` are the same reference. A path is names and indices; a number needs an array and a
name an object's own key; there are no wildcards, filters or expressions. A trailing `?` makes the argument it
feeds optional. In the flat spelling a key that is present with null is the value null; in the contract spelling
null names nothing. Arguments resolve all or nothing: a follow-up is never called with a gap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias, assert_never

from reversi_sdk.errors import InvalidInput


class Root(StrEnum):
    """What a reference starts from."""

    ARGS = "args"
    RESULT = "result"
    BEFORE = "before"
    LOOKUP = "lookup"
    IDEMPOTENCY_KEY = "idempotency_key"


class Spelling(StrEnum):
    """How a manifest writes its references: `$args.a` or `request.a`."""

    FLAT = "flat"
    CONTRACT = "contract"


_SPELLED: Final[Mapping[Spelling, Mapping[Root, str]]] = {
    Spelling.FLAT: {root: f"${root.value}" for root in Root},
    Spelling.CONTRACT: {
        Root.ARGS: "request",
        Root.RESULT: "response",
        Root.BEFORE: "before",
        Root.LOOKUP: "lookup",
        Root.IDEMPOTENCY_KEY: "idempotency_key",
    },
}
_ROOTS: Final[Mapping[Spelling, Mapping[str, Root]]] = {
    spelling: {word: root for root, word in words.items()} for spelling, words in _SPELLED.items()
}
_HEAD: Final[Mapping[Spelling, re.Pattern[str]]] = {
    Spelling.FLAT: re.compile(r"\$[A-Za-z_]+"),
    Spelling.CONTRACT: re.compile(r"[A-Za-z_]+"),
}
# An index of more digits than this is a mistake, and converting it could take for ever.
_INDEX = r"[0-9]{1,15}"
_NAME = r"[A-Za-z_$][A-Za-z0-9_$-]*"
_FLAT_PART = rf"(?:{_INDEX}|[0-9]*[A-Za-z_$-][A-Za-z0-9_$-]*)"
_PATHS: Final[Mapping[Spelling, re.Pattern[str]]] = {
    Spelling.FLAT: re.compile(rf"(?:\.{_FLAT_PART}|\[{_INDEX}\])*"),
    Spelling.CONTRACT: re.compile(rf"(?:\.{_NAME}|\[{_INDEX}\])*"),
}
_SHOWN: Final = 80
_PART: Final = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")


class ReferenceInvalid(InvalidInput):
    """A text is no reference, or a value is none that a map may hold."""

    code = "reference_invalid"

    def __init__(self, *, text: str, problem: str) -> None:
        super().__init__(problem)
        self.text = text
        self.problem = problem


class RootNotAllowed(ReferenceInvalid):
    """A reference is well formed but starts from something this place cannot read."""

    code = "root_not_allowed"


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in the call's arguments, its result, the value before, a look-up's answer, or the key itself."""

    root: Root
    path: tuple[str | int, ...]
    is_optional: bool
    spelling: Spelling

    @property
    def text(self) -> str:
        """The reference as its manifest spells it, `?` included."""
        tail = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return f"{_SPELLED[self.spelling][self.root]}{tail}{'?' if self.is_optional else ''}"

    @property
    def key(self) -> str:
        """The one text both spellings share, under which a resolved value is kept."""
        return ".".join([f"${self.root.value}", *map(str, self.path)])


@dataclass(frozen=True, slots=True)
class Const:
    """A literal, null included."""

    value: Any


@dataclass(frozen=True, slots=True)
class ListValue:
    """A list whose items are map values."""

    items: tuple[MapValue, ...]


@dataclass(frozen=True, slots=True)
class ObjectValue:
    """An object whose members are map values."""

    members: Mapping[str, MapValue]


MapValue: TypeAlias = Reference | Const | ListValue | ObjectValue


@dataclass(frozen=True, slots=True)
class Found:
    """A reference named this value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Missing:
    """A reference named nothing."""


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a follow-up call, complete."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A follow-up call cannot be built: which argument lacks its value, and where that should have come from."""

    reason: str
    argument: str
    source: str


@dataclass(frozen=True, slots=True)
class MapProblem:
    """What is wrong with one part of a map value, and where inside it."""

    path: tuple[str | int, ...]
    error: ReferenceInvalid


def parse_reference(text: str, *, spelling: Spelling, roots: Collection[Root] | None = None) -> Reference:
    """Read one reference; `roots` are those its place may read.

    Raises RootNotAllowed for a well-formed reference from another root, ReferenceInvalid for anything else.
    """
    reference = _parse(text, spelling)
    if roots is not None and reference.root not in roots:
        raise RootNotAllowed(text=text, problem=_root_problem(text, spelling, roots))
    return reference


def _parse(text: str, spelling: Spelling) -> Reference:
    body = text.removesuffix("?")
    head = _HEAD[spelling].match(body)
    root = _ROOTS[spelling].get(head.group()) if head else None
    if head is None or root is None:
        raise ReferenceInvalid(text=text, problem=f"{_shown(text)} is no reference; {_expected(spelling)}")
    tail = body[head.end() :]
    if not _PATHS[spelling].fullmatch(tail):
        raise ReferenceInvalid(
            text=text, problem=f"{_shown(text)} does not parse: after the root come .name or [index] parts"
        )
    if root is Root.IDEMPOTENCY_KEY and tail:
        raise ReferenceInvalid(text=text, problem=f"{_shown(text)} does not parse: the idempotency key has no parts")
    if root is not Root.IDEMPOTENCY_KEY and not tail:
        raise ReferenceInvalid(
            text=text, problem=f"{_shown(text)} names no value: say which part, as in {head.group()}.id"
        )
    return Reference(root=root, path=_parts(tail), is_optional=body != text, spelling=spelling)


def _parts(tail: str) -> tuple[str | int, ...]:
    words = (name or index for name, index in _PART.findall(tail))
    return tuple(int(word) if re.fullmatch(_INDEX, word) else word for word in words)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _expected(spelling: Spelling) -> str:
    match spelling:
        case Spelling.FLAT:
            return "references look like $args.id or $result.charge_id"
        case Spelling.CONTRACT:
            return "references look like request.id or response.charge_id"
        case _:
            assert_never(spelling)


def _root_problem(text: str, spelling: Spelling, roots: Collection[Root]) -> str:
    allowed = ", ".join(word for root, word in _SPELLED[spelling].items() if root in roots)
    return f"{_shown(text)} cannot be read here; allowed: {allowed}"


def parse_path(text: str) -> tuple[str | int, ...]:
    """Read a path into an answer, such as `items.0.id`; raises ReferenceInvalid."""
    tail = text if text.startswith("[") else f".{text}"
    if not text or not _PATHS[Spelling.FLAT].fullmatch(tail):
        raise ReferenceInvalid(text=text, problem=f"{_shown(text)} is no path; paths look like status or items.0.id")
    return _parts(tail)


def spelling_of(data: Any, *, default: Spelling) -> Spelling:
    """Tell the spelling of a value where a contract manifest may use either: a leading `$` is the flat one."""
    return Spelling.FLAT if isinstance(data, str) and data.startswith("$") else default


def looks_like_reference(text: str, *, spelling: Spelling) -> bool:
    """Whether a text that may also be a literal is meant as a reference: it starts with a root and a part."""
    head = _HEAD[spelling].match(text)
    if head is None or head.group() not in _ROOTS[spelling]:
        return False
    if spelling is Spelling.FLAT:
        return text[head.end() : head.end() + 1] in ("", ".", "[", "?")
    return text[head.end() : head.end() + 1] in (".", "[")


def parse_map_value(data: Any, *, spelling: Spelling) -> MapValue:
    """Read a map value: a reference or `{const: value}`, in the flat spelling also lists and objects of them."""
    return _sound(read_map_value(data, spelling=spelling))


def parse_expected_value(data: Any, *, spelling: Spelling) -> MapValue:
    """Read what a read-back must find; raises ReferenceInvalid."""
    return _sound(read_expected_value(data, spelling=spelling))


def _sound(read: tuple[MapValue | None, tuple[MapProblem, ...]]) -> MapValue:
    value, problems = read
    if value is None:
        raise problems[0].error
    return value


def read_map_value(
    data: Any, *, spelling: Spelling, roots: Collection[Root] | None = None
) -> tuple[MapValue | None, tuple[MapProblem, ...]]:
    """Read a map value and list everything that is wrong with it; the value is None when anything is."""
    problems: list[MapProblem] = []
    value = _MapReader(spelling=spelling, roots=roots, is_expected=False, problems=problems).read(data, ())
    return (None if problems else value), tuple(problems)


def read_expected_value(
    data: Any, *, spelling: Spelling, roots: Collection[Root] | None = None
) -> tuple[MapValue | None, tuple[MapProblem, ...]]:
    """Read what a read-back must find: literals, and references where a text starts like one (D37)."""
    problems: list[MapProblem] = []
    value = _MapReader(spelling=spelling, roots=roots, is_expected=True, problems=problems).read(data, ())
    return (None if problems else value), tuple(problems)


@dataclass(frozen=True, slots=True)
class _MapReader:
    spelling: Spelling
    roots: Collection[Root] | None
    is_expected: bool
    problems: list[MapProblem]

    def read(self, data: Any, path: tuple[str | int, ...]) -> MapValue:
        match data:
            case str():
                return self._text(data, path)
            case {"const": value} if len(data) == 1:
                return Const(value)
            case dict() if self._takes_nesting:
                return self._object(data, path)
            case list() if self._takes_nesting:
                return ListValue(tuple(self.read(item, (*path, number)) for number, item in enumerate(data)))
            case _ if self.is_expected:
                return Const(data)
            case _:
                return self._refuse(data, path)

    @property
    def _takes_nesting(self) -> bool:
        return self.is_expected or self.spelling is Spelling.FLAT

    def _text(self, text: str, path: tuple[str | int, ...]) -> MapValue:
        if self.is_expected and not looks_like_reference(text, spelling=self.spelling):
            return Const(text)
        try:
            reference = parse_reference(text, spelling=self.spelling, roots=self.roots)
        except ReferenceInvalid as error:
            self.problems.append(MapProblem(path, error))
            return Const(None)
        if self.is_expected and reference.is_optional:
            # An expectation that may drop out would let a read-back confirm what it never looked at.
            problem = f"{_shown(text)} cannot be optional: what is not there cannot be checked"
            self.problems.append(MapProblem(path, ReferenceInvalid(text=text, problem=problem)))
        return reference

    def _object(self, data: Mapping[Any, Any], path: tuple[str | int, ...]) -> MapValue:
        if "const" in data and not self.is_expected:
            problem = "const stands alone: {const: value}"
            self.problems.append(MapProblem(path, ReferenceInvalid(text="const", problem=problem)))
        names = (name for name in data if isinstance(name, str))
        return ObjectValue({name: self.read(data[name], (*path, name)) for name in names})

    def _refuse(self, data: Any, path: tuple[str | int, ...]) -> Const:
        kind = {dict: "an object", list: "a list", type(None): "null"}.get(type(data), "a literal")
        problem = f"{kind} is no reference; {_expected(self.spelling)}, and a literal is {{const: value}}"
        self.problems.append(MapProblem(path, ReferenceInvalid(text="", problem=problem)))
        return Const(None)


def look_up(reference: Reference, roots: Mapping[Root, Any]) -> Found | Missing:
    """Follow a reference; a root that is not there names nothing."""
    if reference.root not in roots:
        return MISSING
    return follow(roots[reference.root], reference.path)


def follow(value: Any, path: tuple[str | int, ...]) -> Found | Missing:
    """Follow a path: a number needs an array, a name an object's own key."""
    for part in path:
        match part, value:
            case int(), list() if part < len(value):
                value = value[part]
            case str(), dict() if part in value:
                value = value[part]
            case _:
                return MISSING
    return Found(value)


def references_of(value: MapValue) -> tuple[Reference, ...]:
    """Every reference inside a map value, in the order it is written."""
    return tuple(_walk(value))


def _walk(value: MapValue) -> Iterator[Reference]:
    match value:
        case Reference():
            yield value
        case Const():
            return
        case ListValue(items=items):
            for item in items:
                yield from _walk(item)
        case ObjectValue(members=members):
            for member in members.values():
                yield from _walk(member)
        case _:
            assert_never(value)


Finder: TypeAlias = Callable[[Reference], Found | Missing]


class _Gap(Exception):
    """A required value is not there."""

    def __init__(self, reference: Reference) -> None:
        super().__init__(reference.text)
        self.reference = reference


def resolve(arguments: Mapping[str, MapValue], find: Finder) -> Arguments | Unavailable:
    """Fill a map of arguments, all or nothing; what is optional and missing is left out."""
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        try:
            found = _resolve(value, find)
        except _Gap as gap:
            source = gap.reference.text
            return Unavailable(f"argument {name}: {source} names nothing", argument=name, source=source)
        if isinstance(found, Found):
            values[name] = found.value
    return Arguments(values)


def _resolve(value: MapValue, find: Finder) -> Found | Missing:
    match value:
        case Reference():
            return _resolve_reference(value, find)
        case Const(value=literal):
            return Found(literal)
        case ListValue(items=items):
            found = [_resolve_item(item, find) for item in items]
            return Found([item.value for item in found if isinstance(item, Found)])
        case ObjectValue(members=members):
            named = {name: _resolve(member, find) for name, member in members.items()}
            return Found({name: item.value for name, item in named.items() if isinstance(item, Found)})
        case _:
            assert_never(value)


def _resolve_item(item: MapValue, find: Finder) -> Found | Missing:
    """Resolve a list's item; an object of which no member is left stands for nothing and drops out (D37)."""
    found = _resolve(item, find)
    is_emptied = isinstance(item, ObjectValue) and bool(item.members) and found == Found({})
    return MISSING if is_emptied else found


def _resolve_reference(reference: Reference, find: Finder) -> Found | Missing:
    found = find(reference)
    is_null = isinstance(found, Found) and found.value is None
    if isinstance(found, Found) and not (is_null and reference.spelling is Spelling.CONTRACT):
        return found
    if reference.is_optional:
        return MISSING
    raise _Gap(reference)
