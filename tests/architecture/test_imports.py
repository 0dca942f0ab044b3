"""The doors between the rooms: the contracts in pyproject.toml, and what these cannot say for apps to come."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp
import pytest

from tests.postgres import REPOSITORY

APPS = ("approvals", "gateway", "ledger", "manifests_registry", "rollback")
PACKAGES = (*APPS, "connectors", "reversi_sdk", "reversi_site")
KIT = "reversi_site.kit"

# What would make a rule depend on the moment or the machine; a clock or a draw is passed in as a value.
IMPURE = frozenset(
    {"asyncio", "http", "os", "random", "secrets", "shutil", "socket", "subprocess", "tempfile", "threading", "time"}
)


@cache
def import_graph() -> grimp.ImportGraph:
    return grimp.build_graph(
        *PACKAGES, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )


def imported_by(module: str) -> frozenset[str]:
    return frozenset(import_graph().find_modules_directly_imported_by(module))


def modules_under(*packages: str) -> tuple[str, ...]:
    return tuple(
        module
        for module in sorted(import_graph().modules)
        if any(module == package or module.startswith(f"{package}.") for package in packages)
    )


def app_of(module: str) -> str:
    return module.partition(".")[0]


def test_contracts_of_the_project_hold() -> None:
    # As a process: its own logging would switch ours off for the tests that follow.
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


def test_models_are_private_to_their_app() -> None:
    foreign = {
        (module, imported)
        for module in modules_under(*PACKAGES)
        for imported in imported_by(module)
        if app_of(imported) in (*APPS, "reversi_site")
        and imported.partition(".")[2].partition(".")[0] == "models"
        and app_of(imported) != app_of(module)
    }

    assert foreign == set()


def test_composition_root_is_imported_by_nobody() -> None:
    upward = {
        (module, imported)
        for module in modules_under(*APPS, "connectors", "reversi_sdk", KIT)
        for imported in imported_by(module)
        if imported in modules_under("reversi_site") and imported not in modules_under(KIT)
    }

    assert upward == set()


def test_queue_is_known_by_dispatch_alone() -> None:
    knowing = {module for module in modules_under(*APPS, KIT) if "django_q" in imported_by(module)}

    assert {module for module in knowing if not module.endswith(".dispatch")} == set()


@pytest.mark.parametrize("app", APPS)
def test_core_needs_no_clock_environment_chance_or_network(app: str) -> None:
    impure = {
        (module, imported)
        for module in modules_under(f"{app}.core")
        for imported in imported_by(module)
        if imported in IMPURE
    }

    assert impure == set()
