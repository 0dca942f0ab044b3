"""Sealed content opens for its purpose, its place and its key, and nowhere else."""

from dataclasses import replace

import pytest

from ledger.core.boxes import BoxRing, SealedBox

KEYS = {"k2": b"2" * 32, "k1": b"1" * 32}
NONCE = b"n" * 12
BOUND = ("apr_1", "run_1")


def sealed() -> SealedBox:
    return BoxRing(KEYS, "arguments").seal(b"secret", BOUND, NONCE)


def test_open_returns_what_was_sealed_under_the_current_key() -> None:
    box = sealed()

    assert box.key_id == "k2"
    assert b"secret" not in box.ciphertext
    assert BoxRing(KEYS, "arguments").open(box, BOUND) == b"secret"


def test_open_serves_after_the_keys_were_rotated() -> None:
    newer = {"k3": b"3" * 32, **KEYS}

    assert BoxRing(newer, "arguments").open(sealed(), BOUND) == b"secret"


OTHERS: dict[str, tuple[BoxRing, SealedBox, tuple[str, ...]]] = {
    "another purpose": (BoxRing(KEYS, "answers"), sealed(), BOUND),
    "another place": (BoxRing(KEYS, "arguments"), sealed(), ("apr_2", "run_1")),
    "another split of the place": (BoxRing(KEYS, "arguments"), sealed(), ("apr_1run_1",)),
    "a key that left": (BoxRing({"k1": KEYS["k1"]}, "arguments"), sealed(), BOUND),
    "another key of that name": (BoxRing({"k2": b"x" * 32}, "arguments"), sealed(), BOUND),
    "altered": (BoxRing(KEYS, "arguments"), replace(sealed(), ciphertext=b"x" + sealed().ciphertext[1:]), BOUND),
}


@pytest.mark.parametrize("case", OTHERS)
def test_open_gives_nothing_to(case: str) -> None:
    ring, box, bound_to = OTHERS[case]

    assert ring.open(box, bound_to) is None
