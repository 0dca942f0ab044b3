"""Conditions of database constraints over the words of an enum."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from django.db.models import Q


def words(members: Iterable[StrEnum]) -> list[str]:
    """Return the members' words as plain texts, so that a migration never imports the enums of its day."""
    return sorted(member.value for member in members)


def one_of(field: str, known: type[StrEnum]) -> Q:
    """Return the condition that the column holds one of the enum's words."""
    return Q(**{f"{field}__in": words(known)})
