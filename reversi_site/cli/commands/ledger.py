"""`reversi ledger`: check the journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from reversi_site.cli import session
from reversi_site.cli.output import counted, emit_json, emit_lines
from reversi_site.cli.parameters import RUN, json_option

if TYPE_CHECKING:
    from ledger.core.chain import ChainReport

GOVERNANCE = "governance log"


@click.group()
def ledger() -> None:
    """Check the journal.

    \b
    Example:
      reversi ledger verify
    """


@ledger.command(short_help="Re-compute the hash chains.")
@click.argument("run", type=RUN, required=False)
@json_option
def verify(*, run: str | None, is_json: bool) -> int:
    """Re-compute the hash chains: of one run, or of every run and the governance log.

    Names every event that was edited, removed or reordered, and every step whose row says something else than its
    events. What was cut off at the end of a chain together with the run's own row cannot be found this way.

    \b
    Examples:
      reversi ledger verify
      reversi ledger verify run_01J --json
    """
    session.open_store()
    reports = dict(_reports(run))
    is_whole = not any(report.problems for report in reports.values())
    if is_json:
        emit_json({"ok": is_whole, "chains": [_document(name, report) for name, report in reports.items()]})
    else:
        emit_lines(line for name, report in reports.items() for line in _lines(name, report))
    return 0 if is_whole else 1


def _reports(run: str | None) -> Iterator[tuple[str, ChainReport]]:
    from ledger import queries

    if run is not None:
        yield run, queries.check_run_chain(run)
        return
    for run_id in queries.list_run_ids():
        yield run_id, queries.check_run_chain(run_id)
    yield GOVERNANCE, queries.check_governance_chain()


def _document(name: str, report: ChainReport) -> dict[str, Any]:
    return {"chain": name, "events": report.count, "purged": report.purged, "problems": list(report.problems)}


def _lines(name: str, report: ChainReport) -> Iterator[str]:
    purged = f", {report.purged} with purged data" if report.purged else ""
    yield f"{'BROKEN' if report.problems else 'ok'} {name}: {counted(report.count, 'event')}{purged}"
    yield from (f"  {problem}" for problem in report.problems)
