"""How long to wait before an upstream is started again."""

import pytest

from gateway.core.backoff import restart_wait_s


@pytest.mark.parametrize(
    ("failures", "longest"), [(0, 0.2), (1, 0.4), (2, 0.8), (7, 25.6), (8, 30.0), (9, 30.0), (1000, 30.0)]
)
def test_the_wait_doubles_up_to_half_a_minute(failures: int, longest: float) -> None:
    assert restart_wait_s(failures, chance=0.0) == pytest.approx(longest / 2)
    assert restart_wait_s(failures, chance=0.999999) == pytest.approx(longest, rel=1e-5)
    assert restart_wait_s(failures, chance=0.5) == pytest.approx(longest * 0.75)
