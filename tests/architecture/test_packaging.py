"""What an installation offers: its commands exist, and it asks for what the pinned requirements hold."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from tests.postgres import REPOSITORY

BUILDS_THE_PACKAGE = "setuptools"


@cache
def project() -> dict[str, Any]:
    data: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return data


def distribution(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name, requirement
    return name.group().lower()


@pytest.mark.parametrize("command", project()["scripts"])
def test_command_exists(command: str) -> None:
    module, _, function = project()["scripts"][command].partition(":")

    assert callable(getattr(import_module(module), function))


def test_dependencies_are_those_that_are_pinned() -> None:
    extras = [requirement for extra in project()["optional-dependencies"].values() for requirement in extra]
    declared = {distribution(requirement) for requirement in (*project()["dependencies"], *extras)}
    lines = (REPOSITORY / "requirements.in").read_text(encoding="utf-8").splitlines()
    pinned = {distribution(line) for line in lines if line and not line.startswith("#")}

    assert declared == pinned - {BUILDS_THE_PACKAGE}


def test_packages_are_all_installed() -> None:
    found = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = found["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = {path.parent.name for path in REPOSITORY.glob("*/__init__.py")} - {"tests"}

    assert {pattern.removesuffix("*") for pattern in patterns} == packages
