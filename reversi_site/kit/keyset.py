"""Pages of a list by the place of their last row: the next page costs what the first did, however long the list.

A place is the values of the ordering columns; a page that starts there is the same whatever came in before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")
Other = TypeVar("Other")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page starts: after the row with these values, or before it when reading backwards."""

    values: tuple[Any, ...]
    is_backward: bool = False


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some items of a list and where its neighbours start; None where there is no neighbour."""

    items: Sequence[Item]
    next: Place | None = None
    previous: Place | None = None

    def of(self, convert: Callable[[Item], Other]) -> Page[Other]:
        """Return the page with its items converted."""
        return Page([convert(item) for item in self.items], self.next, self.previous)


def keyset_page(
    rows: QuerySet[Row], *, columns: Sequence[str], is_descending: bool, place: Place | None, size: int
) -> Page[Row]:
    """Return one page of the rows in the order of `columns`, in one query."""
    is_backward = place is not None and place.is_backward
    goes_down = is_descending is not is_backward
    if place is not None:
        rows = rows.filter(_beyond(columns, place.values, goes_down=goes_down))
    found = list(rows.order_by(*(f"-{column}" if goes_down else column for column in columns))[: size + 1])
    has_more, found = len(found) > size, found[:size]
    if is_backward:
        found.reverse()
    return _page(found, columns, has_next=is_backward or has_more, has_previous=_has_previous(place, has_more))


def _has_previous(place: Place | None, has_more: bool) -> bool:
    if place is None:
        return False
    return has_more if place.is_backward else True


def _beyond(columns: Sequence[str], values: Sequence[Any], *, goes_down: bool) -> Q:
    comparison = "lt" if goes_down else "gt"
    condition = Q()
    equal: dict[str, Any] = {}
    for column, value in zip(columns, values, strict=True):
        condition |= Q(**equal, **{f"{column}__{comparison}": value})
        equal[column] = value
    return condition


def _page(found: list[Row], columns: Sequence[str], *, has_next: bool, has_previous: bool) -> Page[Row]:
    if not found:
        return Page([])

    def values(row: Row) -> tuple[Any, ...]:
        return tuple(getattr(row, column) for column in columns)

    following = Place(values(found[-1])) if has_next else None
    preceding = Place(values(found[0]), is_backward=True) if has_previous else None
    return Page(found, following, preceding)
