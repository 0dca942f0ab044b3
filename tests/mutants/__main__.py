"""Plant each fault in a copy of the tree and run the tests that must notice it.

First the same tests run on the untouched copy, where they must pass: a test that fails anyway proves nothing.
A fault counts as caught only when tests failed; a copy that does not even import is a broken fault, not a caught one.
Exit code 0 when every fault was caught.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.catalog import MUTANTS, Mutant

REPOSITORY = Path(__file__).resolve().parents[2]
# Not tracked, and too big to copy.
SERVERS = REPOSITORY / "tests/npm/node_modules"
TESTS_FAILED = 1
TIME_LIMIT_S = 600


def main(names: Sequence[str]) -> int:
    """Try the named faults, or all."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    with tempfile.TemporaryDirectory(prefix="reversi-mutants-") as folder:
        tree = copy_tree(Path(folder) / "tree")
        every_test = sorted({test for mutant in chosen for test in mutant.tests})
        if run_tests(tree, every_test) != 0:
            say("the tests fail on the untouched tree: mend them first")
            return 1
        escaped = [mutant.name for mutant in chosen if not is_caught(tree, mutant)]
    say(f"{len(chosen) - len(escaped)} of {len(chosen)} faults caught")
    return 1 if escaped or not chosen else 0


def copy_tree(target: Path) -> Path:
    """Copy every tracked file as it is in the working tree."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True).stdout
    for name in listing.decode().split("\0"):
        source = REPOSITORY / name
        if name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    if SERVERS.is_dir():
        (target / SERVERS.relative_to(REPOSITORY)).symlink_to(SERVERS)
    return target


def is_caught(tree: Path, mutant: Mutant) -> bool:
    """Plant the fault, run its tests, take it out again."""
    path = tree / mutant.path
    sound = path.read_text(encoding="utf-8")
    if sound.count(mutant.before) != 1:
        say(f"BROKEN   {mutant.name}: its place in {mutant.path} is found {sound.count(mutant.before)} times")
        return False
    path.write_text(sound.replace(mutant.before, mutant.after), encoding="utf-8")
    try:
        code = run_tests(tree, mutant.tests)
    finally:
        path.write_text(sound, encoding="utf-8")
    verdict = {TESTS_FAILED: "caught", 0: "ESCAPED"}.get(code, f"BROKEN (pytest exit {code})")
    say(f"{verdict:8} {mutant.name}  ({mutant.path})")
    return code == TESTS_FAILED


def run_tests(tree: Path, tests: Sequence[str]) -> int:
    """Run the tests on SQLite in the copy; returns pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "--no-header", "-k", "not postgres", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=TIME_LIMIT_S,
        check=False,
    ).returncode


def say(line: str) -> None:
    """Print at once: a fault may take a while."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
