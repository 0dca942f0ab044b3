"""What the README says can be done as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from reversi_site.cli.group import COMMANDS, reversi
from reversi_site.configuration import FILE_NAME, ConfigurationInvalid, load_configuration
from reversi_site.errors import ExitCode
from tests.postgres import REPOSITORY
from tests.reversi_site.conftest import Shell

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group(1)


def section(title: str) -> str:
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_agent_of_the_readme_works_and_is_undone(shell: Shell) -> None:
    (shell.folder / "work").mkdir()
    manifests = subprocess.run(
        [sys.executable, "-m", "connectors", "manifests", "fs", "--format", "yaml"],
        env=shell.env(),
        capture_output=True,
        text=True,
        check=True,
    )
    (shell.folder / "manifests.yaml").write_text(manifests.stdout)
    (shell.folder / "reversi.config.yaml").write_text(block("yaml"))
    (shell.folder / "agent.py").write_text(block("python"))

    agent = subprocess.run(
        [sys.executable, "agent.py"], cwd=shell.folder, env=shell.env(), capture_output=True, text=True, check=False
    )
    assert (agent.returncode, agent.stderr) == (0, "")
    assert (shell.folder / "work" / "notes" / "tomorrow.md").read_text() == "buy milk\n"
    assert "move notes/today.md to notes/tomorrow.md" in shell.run("runs", "show", "--last").stdout
    assert shell.run("plan", "--last").returncode == 0

    done = shell.run("rollback", "--last")

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "rollback COMPLETE")
    assert not (shell.folder / "work" / "notes").exists()


def test_every_command_is_in_the_readme_and_none_beyond() -> None:
    named = {
        (words[1], tuple(words[2].split("/")) if len(words) > 2 and "/" in words[2] and words[2].islower() else ())
        for words in (
            row.split()
            for row in re.findall(r"^\| `(reversi [^`]+)`", section("Commands").replace(r"\|", "/"), re.MULTILINE)
        )
    }

    context = click.Context(reversi)
    groups = {name: reversi.get_command(context, name) for name in COMMANDS}
    assert {name for name, _ in named} == set(COMMANDS)
    for name, subcommands in named:
        group = groups[name]
        if subcommands:
            assert isinstance(group, click.Group)
            assert set(subcommands) == set(group.commands)


def test_exit_codes_are_in_the_readme() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", section("Commands"), re.MULTILINE)}

    assert documented == {code.value for code in ExitCode}


def test_configuration_keys_are_in_the_readme(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("nonsense: 1\n")
    with pytest.raises(ConfigurationInvalid, match="known are") as refused:
        load_configuration({}, tmp_path)

    known = str(refused.value).partition("known are ")[2].split(", ")
    assert sorted(re.findall(r"^\| `(\w+)` \|", section("Configuration"), re.MULTILINE)) == known


def test_the_commands_without_make_are_those_of_the_makefile() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")

    for line in section("Quick start").splitlines():
        if "pip install" in line:
            assert line.partition("pip install")[2].strip() in makefile, line
