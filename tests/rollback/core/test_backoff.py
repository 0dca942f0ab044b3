"""Waiting between tries."""

from __future__ import annotations

from typing import Any

import pytest

from rollback.core.backoff import Retrying, delay_ms, doubled_ms
from rollback.core.errors import OptionsInvalid
from rollback.core.options import RollbackOptions
from rollback.core.selection import Selection


@pytest.mark.parametrize(
    ("tries", "chance", "expected"), [(1, 0.0, 125), (1, 1.0, 250), (2, 1.0, 500), (3, 0.5, 750), (9, 1.0, 30_000)]
)
def test_delay_doubles_is_capped_and_spread(tries: int, chance: float, expected: int) -> None:
    assert delay_ms(Retrying(attempts=10), tries=tries, chance=chance) == expected


def test_a_read_back_waits_twice_as_long_each_time() -> None:
    assert [doubled_ms(1000, tries) for tries in (1, 2, 3)] == [1000, 2000, 4000]


@pytest.mark.parametrize("fields", [{"attempts": 0}, {"attempts": 11}, {"base_ms": -1}, {"max_ms": -1}])
def test_retrying_out_of_range_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(OptionsInvalid):
        Retrying(**fields)


def test_options_survive_json() -> None:
    options = RollbackOptions(
        retrying=Retrying(attempts=3, base_ms=1, max_ms=2),
        selection=Selection(to_step=3),
        approves_compensations=True,
        is_overwrite_allowed=True,
        closes=True,
        digest="d",
    )

    assert RollbackOptions.from_json(options.to_json()) == options
