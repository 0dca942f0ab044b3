"""What must hold across the tools of all connectors, so that every declared undo can really be called.

Names carry the connector's prefix and are unique; each undo is an idempotent tool of the same connector, left to
rollback alone (D38), that takes exactly the mapped arguments; each read-back is a read of the same connector; a
reference to an argument names one that the tool has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from connectors.core.connector import ConnectorSpec
from connectors.core.fields import Field
from connectors.core.tool import Tool, UndoRow
from reversi_sdk.model import Effect

UNDOABLE = frozenset({Effect.REVERSIBLE, Effect.COMPENSABLE})
ARGUMENT_IN_MAP = re.compile(r"\$args\.([A-Za-z0-9_-]+)")
ARGUMENT_IN_TEMPLATE = re.compile(r"\{\{\s*args\.([A-Za-z0-9_-]+)")


def catalog_problems(specs: Iterable[ConnectorSpec]) -> tuple[str, ...]:
    """Return every broken rule in words; empty when the catalog is sound."""
    specs = tuple(specs)
    names = Counter(row.name for spec in specs for row in spec.rows)
    doubled = [f"{name}: the name is used {count} times" for name, count in names.items() if count > 1]
    return (*doubled, *(problem for spec in specs for row in spec.rows for problem in _row_problems(spec, row)))


def _row_problems(spec: ConnectorSpec, row: Tool) -> Iterator[str]:
    if not row.name.startswith(f"{spec.name}."):
        yield f"{row.name}: the name must start with {spec.name}."
    if (row.undo is not None) != (row.effect in UNDOABLE):
        undo = "an undo" if row.undo else "no undo"
        yield f"{row.name}: effect {row.effect} and {undo} contradict each other"
    yield from _template_problems(row)
    if row.undo is not None:
        yield from _undo_problems(spec, row, row.undo)


def _template_problems(row: Tool) -> Iterator[str]:
    for template in (row.summary, *row.touches):
        for argument in ARGUMENT_IN_TEMPLATE.findall(template):
            if argument not in row.inputs:
                yield f"{row.name}: {template} reads an argument that the tool does not have"


def _undo_problems(spec: ConnectorSpec, row: Tool, undo: UndoRow) -> Iterator[str]:
    target = spec.tools.get(undo.tool)
    if target is None:
        yield f"{row.name}: its undo {undo.tool} is no tool of {spec.name}"
    else:
        if target.effect is not Effect.IDEMPOTENT or not target.is_compensation_only:
            yield f"{row.name}: its undo {undo.tool} must be idempotent and only for undoing"
        yield from _map_problems(row, undo.argument_map, target)
    if undo.verification is not None:
        yield from _verification_problems(spec, row, undo)


def _verification_problems(spec: ConnectorSpec, row: Tool, undo: UndoRow) -> Iterator[str]:
    verification = undo.verification
    if verification is None:
        return
    reader = spec.tools.get(verification.tool)
    if reader is None or not reader.is_reading:
        yield f"{row.name}: its read-back {verification.tool} is no read-only tool of {spec.name}"
    else:
        yield from _map_problems(row, verification.arguments, reader)
    if not verification.expect:
        yield f"{row.name}: its read-back expects nothing"


def _map_problems(row: Tool, mapped: Mapping[str, Any], target: Tool) -> Iterator[str]:
    for name in mapped:
        if name not in target.inputs:
            yield f"{row.name}: {target.name} takes no argument {name}"
    for name, declared in target.inputs.items():
        if declared.is_required and name not in mapped:
            yield f"{row.name}: {target.name} needs the argument {name}, which is not mapped"
    for reference in _texts(mapped):
        yield from _reference_problems(row.name, reference, row.inputs)


def _reference_problems(name: str, reference: str, inputs: Mapping[str, Field]) -> Iterator[str]:
    match = ARGUMENT_IN_MAP.match(reference)
    if match and match.group(1) not in inputs:
        yield f"{name}: {reference} reads an argument that the tool does not have"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and "const" not in value:
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)
