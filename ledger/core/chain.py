"""The hash chain of a run's events and of the governance log (D28): pure arithmetic over stored fields.

Each hash covers its predecessor's, so an edit, removal or reordering breaks every hash after it. Data is covered by
a keyed digest (of the run's salt), so it can be purged and the chain still verifies.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reversi_sdk.canonical import canonical_bytes

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Link:
    """One stored event, as the chain sees it; `fields` are the hashed ones without `prev`."""

    fields: Mapping[str, Any]
    prev: str
    hash: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Head:
    """Where the next event goes."""

    next_seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What re-computing a chain showed; `problems` is empty when every event is as it was written."""

    count: int
    purged: int
    problems: tuple[str, ...]


def timestamp(at: datetime) -> str:
    """Return RFC 3339 in UTC with six decimals and Z."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def event_hash(fields: Mapping[str, Any], prev: str) -> str:
    """Return the hash of an event's fields chained to `prev`."""
    return hashlib.sha256(canonical_bytes({**fields, "prev": prev})).hexdigest()


def data_digest(data: bytes | None, salt: bytes) -> str | None:
    """Return the digest of an event's data under the run's salt."""
    return None if data is None else hmac.new(salt, data, hashlib.sha256).hexdigest()


def check_chain(links: Iterable[Link], head: Head, salt: bytes | None) -> ChainReport:
    """Re-compute the chain from its first event to `head`; without a salt the data is reported as purged."""
    problems: list[str] = []
    prev, count, purged = GENESIS, 0, 0
    for count, link in enumerate(links, start=1):
        place = f"event {link.fields['seq']}"
        if link.fields["seq"] != count - 1:
            problems.append(f"{place}: expected event {count - 1} here")
        if link.prev != prev:
            problems.append(f"{place}: does not follow the event before it")
        if event_hash(link.fields, link.prev) != link.hash:
            problems.append(f"{place}: was changed after it was written")
        purged += _is_purged(link, salt)
        if not _is_purged(link, salt) and link.fields["data_hash"] != data_digest(link.data, salt or b""):
            problems.append(f"{place}: its data was changed after it was written")
        prev = link.hash
    if head != Head(count, prev):
        problems.append(f"the chain ends at event {count - 1}, the run says event {head.next_seq - 1}")
    return ChainReport(count, purged, tuple(problems))


def _is_purged(link: Link, salt: bytes | None) -> bool:
    return link.fields["data_hash"] is not None and (link.data is None or salt is None)
