"""`reversi doctor`: is everything in order, and if not, how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reversi_site.cli.output import emit_json, emit_lines
from reversi_site.cli.parameters import json_option

if TYPE_CHECKING:
    from reversi_site.doctor import Finding


@click.command(short_help="Is everything in order, and if not, how to mend it.")
@json_option
def doctor(*, is_json: bool) -> int:
    """Check store, keys, worker, schedules, manifests, upstreams, clock, governance log and steps.

    Each line is `ok`, `warn` or `FAIL`, what was found, and how to mend it; exit 1 when anything fails.

    \b
    Examples:
      reversi doctor
      reversi doctor --json
    """
    from reversi_site.doctor import Level, examine

    findings = examine()
    is_well = not any(finding.level is Level.FAIL for finding in findings)
    if is_json:
        emit_json({"ok": is_well, "checks": [_document(finding) for finding in findings]})
    else:
        emit_lines(_line(finding) for finding in findings)
    return 0 if is_well else 1


def _line(finding: Finding) -> str:
    remedy = f" → {finding.remedy}" if finding.remedy else ""
    return f"{finding.level:<4} {finding.name}: {finding.fact}{remedy}"


def _document(finding: Finding) -> dict[str, str]:
    return {"level": finding.level, "name": finding.name, "fact": finding.fact, "remedy": finding.remedy}
