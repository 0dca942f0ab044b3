"""What the commands around rollbacks share: their options, the tools they reach, and what they show meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reversi_site.cli.output import emit_json, emit_lines, is_watched, note
from reversi_site.cli.parameters import COMMAND, DIGEST, Command, selection_options

if TYPE_CHECKING:
    from reversi_sdk.model import Manifest
    from rollback.core.options import RollbackOptions
    from rollback.core.ports import Tools
    from rollback.core.progress import OnProgress, Progress
    from rollback.core.report import Report
    from rollback.core.selection import Selection


def manifests_option(command: Command) -> Command:
    """Add `-m`."""
    help_text = "Manifests for tools that the run's own do not describe."
    option = click.option("-m", "--manifests", type=click.Path(path_type=Path), metavar="PATH", help=help_text)
    return option(command)


def reader_option(command: Command) -> Command:
    """Add `--reader-cmd`."""
    help_text = "Runs read-backs: gets {tool, arguments} as JSON on stdin, prints the answer as JSON."
    return click.option("--reader-cmd", type=COMMAND, metavar="CMD", help=help_text)(command)


def decision_options(command: Command) -> Command:
    """Add what an operator decides about a rollback: the arguments of `chosen_options`."""
    options = (
        click.option("--retries", type=click.IntRange(1, 10), default=1, show_default=True, help="Attempts per undo."),
        click.option("--approve-compensations", is_flag=True, help="Approve the undos that need it, in one go."),
        selection_options,
        click.option("--overwrite", is_flag=True, help="Undo also where newer work would be lost."),
        click.option("--close", is_flag=True, help="Close the run afterwards."),
        click.option("--digest", type=DIGEST, metavar="D", help="Execute the plan of this digest, or nothing."),
    )
    # The last one added is the first one shown.
    for option in reversed(options):
        command = option(command)
    return command


def described_tools(path: Path | None) -> Mapping[str, Manifest]:
    """Return the manifests of `-m`, before the store is opened; raises InvalidManifests."""
    if path is None:
        return {}
    from manifests_registry.sources import read_snapshot

    return {tool: entry.manifest for tool, entry in read_snapshot([path]).entries.items()}


def chosen_steps(steps: tuple[int, ...] | None, to_step: int | None) -> Selection | None:
    """Return the selection that the options make."""
    from rollback.core.selection import Selection

    return None if steps is None and to_step is None else Selection(steps=steps, to_step=to_step)


def chosen_options(
    *,
    retries: int,
    approve_compensations: bool,
    steps: tuple[int, ...] | None,
    to_step: int | None,
    overwrite: bool,
    close: bool,
    digest: str | None,
) -> RollbackOptions:
    """Return what the operator decided."""
    from rollback.core.backoff import Retrying
    from rollback.core.options import RollbackOptions

    return RollbackOptions(
        retrying=Retrying(attempts=retries),
        selection=chosen_steps(steps, to_step),
        approves_compensations=approve_compensations,
        is_overwrite_allowed=overwrite,
        closes=close,
        digest=digest,
    )


def chosen_tools(
    compensator_cmd: str | None = None, reader_cmd: str | None = None, verify_cmd: str | None = None
) -> Tools:
    """Return the configured tools, the given commands before them; the store must be open."""
    from django.conf import settings

    from reversi_site.wiring import build_tools

    return build_tools(
        settings.CONFIGURATION, compensator_cmd=compensator_cmd, reader_cmd=reader_cmd, verify_cmd=verify_cmd
    )


def progress_shower() -> OnProgress:
    """Return what tells a person at a terminal how far a rollback is, and nobody else."""
    from rollback.core.progress import stay_silent

    return _show if is_watched() else stay_silent


def _show(progress: Progress) -> None:
    note(f"[{progress.done}/{progress.total}] step {progress.step}  {progress.tool}  {progress.word}")


def show_report(report: Report, *, is_json: bool) -> int:
    """Print a report and return the exit code that it stands for."""
    from rollback.core.text import report_lines

    if is_json:
        emit_json(report.to_json())
    else:
        emit_lines(report_lines(report))
    return 0 if report.is_complete else 2
