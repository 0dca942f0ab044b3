"""Which run a call names, and what a client is called."""

from typing import Any

import pytest

from gateway.core.run_names import NamedBy, RunName, client_name, named_run
from ledger.core.errors import BadRunId

META = {"reversi/run": "run_meta", "progressToken": 1}

NAMES: dict[str, tuple[dict[str, Any], RunName | None]] = {
    "nothing": ({"outside": None, "meta": None, "handle": None}, None),
    "other meta": ({"outside": None, "meta": {"progressToken": 1}, "handle": None}, None),
    "handle": ({"outside": None, "meta": {}, "handle": "run_mine"}, RunName("run_mine", NamedBy.HANDLE)),
    "meta": ({"outside": None, "meta": META, "handle": "run_mine"}, RunName("run_meta", NamedBy.META)),
    "outside": ({"outside": "run_out", "meta": META, "handle": "run_mine"}, RunName("run_out", NamedBy.OUTSIDE)),
}


@pytest.mark.parametrize("case", NAMES)
def test_named_run_takes_the_first_name(case: str) -> None:
    given, expected = NAMES[case]

    assert named_run(**given) == expected


BAD: dict[str, dict[str, Any]] = {
    "empty header": {"outside": "", "meta": None, "handle": None},
    "spaces": {"outside": "my run", "meta": None, "handle": None},
    "line end": {"outside": "run_1\n", "meta": None, "handle": None},
    "too long": {"outside": "r" * 129, "meta": None, "handle": None},
    "number in meta": {"outside": None, "meta": {"reversi/run": 7}, "handle": None},
    "bad meta behind a good header": {"outside": "run_1", "meta": {"reversi/run": "a b"}, "handle": None},
}


@pytest.mark.parametrize("case", BAD)
def test_named_run_refuses_a_name_that_can_be_none(case: str) -> None:
    with pytest.raises(BadRunId):
        named_run(**BAD[case])


CLIENTS: dict[str, tuple[object, str]] = {
    "plain": ("claude-code", "claude-code"),
    "lines": ("  my\n client\t2 ", "my client 2"),
    "direction": ("a\u202eb", "a\\u{202e}b"),
    "half a character": ("a\ud800", "a\\u{d800}"),
    "nothing": ("", "mcp-client"),
    "blank": (" \n", "mcp-client"),
    "no text": (None, "mcp-client"),
    "long": ("c" * 300, "c" * 199 + "…"),
}


@pytest.mark.parametrize("case", CLIENTS)
def test_client_name_can_be_stored_and_shown(case: str) -> None:
    given, expected = CLIENTS[case]

    assert client_name(given) == expected
