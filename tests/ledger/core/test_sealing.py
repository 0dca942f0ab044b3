import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.handles import BeforeRead, Handle, HandleLost
from ledger.core.sealing import Binding, KeyRing, SealedHandle
from reversi_sdk.references import MISSING, Found, Spelling, parse_reference

OLD, NEW = {"k1": b"1" * 32}, {"k2": b"2" * 32}
HANDLE = Handle({"$result.id": "ch_1", "$args.amount": 700}, ("file:a",), BeforeRead.FOUND, "d" * 64)
HERE = Binding("run_a", 3, "c" * 64)
NONCE = b"n" * 12
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values=st.dictionaries(st.text(), json_values, max_size=4))
def test_handle_survives_its_plaintext(values: dict[str, object]) -> None:
    handle = Handle(values, None, BeforeRead.ABSENT, None)
    assert Handle.from_bytes(handle.to_bytes()) == handle


def test_handle_finds_null_and_misses_what_it_lacks() -> None:
    handle = Handle({"$result.backup": None})
    assert handle.find(parse_reference("$result.backup", spelling=Spelling.FLAT)) == Found(None)
    assert handle.find(parse_reference("response.other", spelling=Spelling.CONTRACT)) is MISSING


def test_open_returns_what_was_sealed() -> None:
    ring = KeyRing(NEW)
    assert ring.open(ring.seal(HANDLE, HERE, NONCE), HERE, ring.digest(HANDLE)) == HANDLE


def test_open_still_reads_after_the_key_was_rotated() -> None:
    before, after = KeyRing(OLD), KeyRing({**NEW, **OLD})
    sealed, digest = before.seal(HANDLE, HERE, NONCE), before.digest(HANDLE)
    assert after.open(sealed, HERE, digest) == HANDLE
    assert after.seal(HANDLE, HERE, NONCE).key_id == "k2"


@pytest.mark.parametrize(
    "place",
    [
        Binding("run_b", 3, "c" * 64),
        Binding("run_a", 4, "c" * 64),
        Binding("run_a", 3, "d" * 64),
        Binding("run_a", 3, None),
    ],
)
def test_open_refuses_a_handle_moved_to_another_place(place: Binding) -> None:
    ring = KeyRing(NEW)
    lost = ring.open(ring.seal(HANDLE, HERE, NONCE), place, ring.digest(HANDLE))
    assert isinstance(lost, HandleLost)
    assert "does not decrypt" in lost.reason


def test_open_refuses_an_older_handle_of_the_same_step() -> None:
    ring = KeyRing(NEW)
    sealed = ring.seal(HANDLE, HERE, NONCE)
    lost = ring.open(sealed, HERE, ring.digest(Handle({"$result.id": "ch_2"})))
    assert lost == HandleLost("the undo handle does not match the journal")


@pytest.mark.parametrize("digest", [None, "", "0" * 64])
def test_open_refuses_a_handle_that_no_event_vouches_for(digest: str | None) -> None:
    ring = KeyRing(NEW)
    assert isinstance(ring.open(ring.seal(HANDLE, HERE, NONCE), HERE, digest), HandleLost)


def test_open_names_the_key_that_is_gone() -> None:
    ring = KeyRing(OLD)
    lost = KeyRing(NEW).open(ring.seal(HANDLE, HERE, NONCE), HERE, ring.digest(HANDLE))
    assert isinstance(lost, HandleLost)
    assert "key k1" in lost.reason


def test_any_flipped_bit_of_the_ciphertext_is_noticed() -> None:
    ring = KeyRing(NEW)
    sealed = ring.seal(HANDLE, HERE, NONCE)
    for place in range(len(sealed.ciphertext)):
        altered = bytearray(sealed.ciphertext)
        altered[place] ^= 1
        forged = SealedHandle(sealed.key_id, sealed.nonce, bytes(altered))
        assert isinstance(ring.open(forged, HERE, ring.digest(HANDLE)), HandleLost)
