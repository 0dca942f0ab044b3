"""Which steps share a touched thing (D22).

Two names are shared when they are equal or one is the other plus `/` and more. A step may also touch its whole
upstream, which it shares with every changing step there. The index answers in time that grows with the length of a
name, not with the number of steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ledger.core.handles import Handle
from reversi_sdk.model import Manifest, Undo
from reversi_sdk.references import MapValue, Root, references_of
from rollback.core.steps import PlanStep


@dataclass(frozen=True, slots=True)
class Touch:
    """What a changing step touches: names, its whole upstream, or (neither) only what its upstream holds."""

    upstream: str
    names: tuple[str, ...] = ()
    is_whole: bool = False


def touch_of(step: PlanStep) -> Touch:
    """Return what the step touches; what cannot be known is the whole upstream."""
    upstream, handle, manifest = step.record.upstream, step.record.handle, step.manifest
    if manifest is None or step.distrust is not None or not isinstance(handle, Handle):
        return Touch(upstream, is_whole=True)
    if manifest.touches is not None:
        return Touch(upstream, names=handle.touches or (), is_whole=handle.touches is None)
    return Touch(upstream, is_whole=is_restoring(manifest))


def is_restoring(manifest: Manifest) -> bool:
    """Whether the tool's undo puts a state back, so that it must not run over later work on the same thing."""
    undo = manifest.undo
    if undo is None:
        return False
    return manifest.touches is not None or any(u.self_inverse or _reads_before(u) for u in _undos(undo))


def _undos(undo: Undo) -> Iterator[Undo]:
    yield undo
    if undo.fallback is not None:
        yield undo.fallback


def _reads_before(undo: Undo) -> bool:
    return any(_mentions_before(value) for value in undo.arguments.values())


def _mentions_before(value: MapValue) -> bool:
    return any(reference.root is Root.BEFORE for reference in references_of(value))


@dataclass(slots=True)
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    here: int | None = None
    below: int | None = None


class SharingIndex:
    """Steps added so far, found again by what they share; of several the one added last is returned."""

    def __init__(self) -> None:
        self._root = _Node()
        self._any: dict[str, int] = {}
        self._whole: dict[str, int] = {}

    def add(self, number: int, touch: Touch) -> None:
        """Remember the step under everything it touches."""
        self._any[touch.upstream] = number
        if touch.is_whole:
            self._whole[touch.upstream] = number
        for name in touch.names:
            node = self._root
            for part in name.split("/"):
                node.below = number
                node = node.children.setdefault(part, _Node())
            node.here = number

    def find(self, touch: Touch) -> frozenset[int]:
        """Return, for each thing touched, the step added last that shares it."""
        held = self._any if touch.is_whole else self._whole
        found = {held.get(touch.upstream)}
        for name in touch.names:
            found.update(self._along(name))
        return frozenset(number for number in found if number is not None)

    def _along(self, name: str) -> Iterator[int | None]:
        node = self._root
        for part in name.split("/"):
            child = node.children.get(part)
            if child is None:
                return
            node = child
            yield node.here
        yield node.below
