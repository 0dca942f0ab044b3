import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.core.chain import GENESIS, Head, Link, check_chain, data_digest, event_hash, timestamp

SALT = b"s" * 32


def chain_of(payloads: Sequence[bytes | None]) -> tuple[list[Link], Head]:
    links, prev = [], GENESIS
    for seq, data in enumerate(payloads):
        fields: dict[str, Any] = {
            "run": "run_a",
            "seq": seq,
            "kind": "intended",
            "at": timestamp(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
            "actor": "agent",
            "step": seq if seq % 2 else None,
            "data_hash": data_digest(data, SALT),
        }
        link = Link(fields, prev, event_hash(fields, prev), data)
        links.append(link)
        prev = link.hash
    return links, Head(len(links), prev)


payload_lists = st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=8)


def test_hash_is_sha256_of_the_canonical_fields() -> None:
    fields = {"run": "r", "seq": 0, "kind": "opened", "at": "t", "actor": "é", "step": None, "data_hash": None}
    text = json.dumps({**fields, "prev": GENESIS}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert event_hash(fields, GENESIS) == hashlib.sha256(text.encode()).hexdigest()


def test_timestamp_has_six_decimals_and_z() -> None:
    assert timestamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05.000000Z"


@given(payloads=payload_lists)
def test_untouched_chain_has_no_problem(payloads: list[bytes | None]) -> None:
    links, head = chain_of(payloads)
    report = check_chain(links, head, SALT)
    assert (report.count, report.purged, report.problems) == (len(payloads), 0, ())


@given(payloads=payload_lists, data=st.data())
def test_any_edited_field_is_found(payloads: list[bytes | None], data: st.DataObject) -> None:
    links, head = chain_of(payloads)
    place = data.draw(st.integers(0, len(links) - 1))
    name, value = data.draw(
        st.sampled_from([("kind", "failed"), ("actor", "other"), ("at", "x"), ("step", 99), ("seq", 99), ("run", "b")])
    )
    links[place] = replace(links[place], fields={**links[place].fields, name: value})
    assert check_chain(links, head, SALT).problems


@given(payloads=payload_lists, data=st.data())
def test_any_edited_data_is_found(payloads: list[bytes | None], data: st.DataObject) -> None:
    links, head = chain_of([*payloads, b"kept"])
    place = data.draw(st.integers(0, len(links) - 1))
    links[place] = replace(links[place], data=b"forged" + (links[place].data or b""))
    assert check_chain(links, head, SALT).problems


@given(payloads=st.lists(st.binary(max_size=5), min_size=2, max_size=8), data=st.data())
def test_any_removal_or_reordering_is_found(payloads: list[bytes | None], data: st.DataObject) -> None:
    links, head = chain_of(payloads)
    place = data.draw(st.integers(0, len(links) - 1))
    removed = links[:place] + links[place + 1 :]
    swapped = [*links[1:], links[0]]
    assert check_chain(removed, head, SALT).problems
    assert check_chain(swapped, head, SALT).problems


def test_chain_verifies_after_a_purge_and_counts_it() -> None:
    links, head = chain_of([b"a", None, b"c"])
    purged = [replace(link, data=None) for link in links]
    report = check_chain(purged, head, None)
    assert (report.purged, report.problems) == (2, ())


def test_cut_off_end_is_found_by_the_head() -> None:
    links, head = chain_of([b"a", b"b"])
    assert check_chain(links[:1], head, SALT).problems == ("the chain ends at event 0, the run says event 1",)
