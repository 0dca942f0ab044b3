"""What tests of executing share."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def abandon() -> Callable[[], None]:
    """Let the lease of every running job run out, as it does when its process died."""

    # Not at the top: this file is read before Django is set up.
    from rollback.core.jobs import JobState
    from rollback.models import RollbackJob

    def expire() -> None:
        RollbackJob.objects.filter(state=JobState.RUNNING).update(lease_until_ms=0)

    return expire
