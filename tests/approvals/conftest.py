"""What tests of the gate share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings


@pytest.fixture
def configure() -> Any:
    """Give the deployment other settings of `reversi.config.yaml` for one test."""
    active: list[override_settings] = []

    def change(**fields: Any) -> None:
        changed = override_settings(CONFIGURATION=replace(settings.CONFIGURATION, **fields))
        changed.enable()
        active.append(changed)

    yield change
    while active:
        active.pop().disable()


Configure = Callable[..., None]
