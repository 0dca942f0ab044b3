"""Is everything in order, and if not, how is it mended: one check per thing that was seen to go wrong.

Each check returns a finding; what it needs and cannot have (a store that does not open) makes it fail with that
reason, never the doctor.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reversi_sdk.durations import format_duration
from reversi_sdk.errors import ReversiError
from reversi_site.errors import describe, is_database_unavailable

if TYPE_CHECKING:
    from gateway.core.upstream_specs import UpstreamSpec
    from reversi_site.configuration import Configuration, ConnectorUpstream

SKEW_WARN_MS = 1_000
SKEW_FAIL_MS = 30_000
SCHEDULE_LATE_MS = 3 * 60_000
SERVER_S = 40.0
# All of them is what `reversi ledger verify` is for.
RUNS_LOOKED_AT = 100
# Where each key may come from instead, and what is lost with it.
KEYS = {
    "secret.key": ("REVERSI_SECRET_KEY", "without it queued jobs are dropped and enqueued again"),
    "ledger.keys": ("REVERSI_LEDGER_KEYS", "keep a copy: without it nothing that was called so far can be undone"),
    "calls.key": ("REVERSI_CALL_KEY_SECRET", "keep a copy: without it repeated calls are not recognised"),
}


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check saw; `remedy` says how to mend it and is empty when there is nothing to mend."""

    level: Level
    name: str
    fact: str
    remedy: str = ""


def examine() -> Sequence[Finding]:
    """Run every check; those that need the store are left out when it does not open."""
    store = _guarded("store", _store)
    findings = [store]
    checks = CHECKS if store.level is Level.OK else ()
    for name, check in checks:
        findings.extend(_guarded_all(name, check))
    return findings


def _guarded(name: str, check: Callable[[], Finding]) -> Finding:
    return next(_guarded_all(name, lambda: iter([check()])))


def _guarded_all(name: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        findings = list(check())
    except ReversiError as error:
        findings = [Finding(Level.FAIL, _place_of(error) or name, describe(error))]
    except Exception as error:
        if not is_database_unavailable(error):
            raise
        remedy = "start the database, or correct DATABASE_URL"
        findings = [Finding(Level.FAIL, name, " ".join(str(error).split()), remedy)]
    yield from findings


def _place_of(error: ReversiError) -> str | None:
    """Return what is really wrong, where that is not what was looked at."""
    from reversi_site.configuration import ConfigurationInvalid

    return "configuration" if isinstance(error, ConfigurationInvalid) else None


def _store() -> Finding:
    from reversi_site.store import open_store

    open_store()
    from django.db import connection

    kind = "embedded SQLite on a local disk" if connection.vendor == "sqlite" else "PostgreSQL"
    return Finding(Level.OK, "store", f"{kind}, {connection.settings_dict['NAME']}; no migration is missing")


def _keys() -> Iterator[Finding]:
    from django.conf import settings

    folder = Path(settings.DATA)
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        yield Finding(Level.WARN, "data folder", f"others may look into {folder}", f"chmod 700 {folder}")
    for name, (variable, loss) in KEYS.items():
        yield _key(folder / name, variable, loss)
    yield _key_ring()


def _key_ring() -> Finding:
    """A ring that was lost is made anew without a word, and opens nothing that was sealed before."""
    from ledger.queries import list_lost_key_ids

    lost = list_lost_key_ids()
    if not lost:
        return Finding(Level.OK, "key ring", "has the key of every undo handle")
    fact = f"undo handles are sealed with keys that are not in it ({', '.join(lost)}): their steps cannot be undone"
    return Finding(
        Level.FAIL, "key ring", fact, "restore ledger.keys (or REVERSI_LEDGER_KEYS) from your copy, beside the new key"
    )


def _key(path: Path, variable: str, loss: str) -> Finding:
    name = f"key {path.name}"
    if os.environ.get(variable):
        return Finding(Level.OK, name, f"from {variable}")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding(
            Level.FAIL, name, f"mode {mode:04o}: others can read it", f"chmod 600 {path}; then replace the key"
        )
    return Finding(Level.OK, name, f"mode {mode:04o}; {loss}")


def _worker() -> Iterator[Finding]:
    from reversi_site.schedules import HEARTBEAT_RED_MS, heartbeat_age_ms

    age = heartbeat_age_ms()
    if age is None:
        yield Finding(
            Level.WARN, "worker", "none ever ran", "start `reversi worker`; without one, queued rollbacks wait"
        )
        return
    fact = f"the last heartbeat came {format_duration(max(0, age) // 1000 * 1000)} ago"
    if age > HEARTBEAT_RED_MS:
        yield Finding(Level.FAIL, "worker", fact, "start `reversi worker`; if it runs, restart it")
        return
    yield Finding(Level.OK, "worker", fact)


def _schedules() -> Iterator[Finding]:
    from reversi_site.schedules import list_schedules

    for schedule in list_schedules():
        name = f"schedule {schedule.job}"
        every = f"every {format_duration(schedule.interval_ms)}"
        if not schedule.is_on:
            yield Finding(Level.WARN, name, "is off", "turn it on again, or know why not")
        elif schedule.late_ms > SCHEDULE_LATE_MS:
            late = format_duration(schedule.late_ms // 1000 * 1000)
            yield Finding(Level.FAIL, name, f"{every}, late by {late}", "start `reversi worker`")
        elif schedule.last_error:
            yield Finding(Level.WARN, name, f"{every}; the last run: {schedule.last_error}", "see the worker's log")
        else:
            yield Finding(Level.OK, name, every)


def _configuration() -> Configuration:
    from django.conf import settings

    configuration: Configuration = settings.CONFIGURATION
    return configuration


def _manifests() -> Iterator[Finding]:
    from manifests_registry.queries import current_snapshot

    paths = _configuration().manifests
    if not paths:
        remedy = "name files or folders under `manifests:` in reversi.config.yaml"
        yield Finding(Level.WARN, "manifests", "none configured: in enforce mode every call is blocked", remedy)
        return
    count = len(current_snapshot(paths).entries)
    yield Finding(Level.OK, "manifests", f"{count} tools from plain files, enforced as they stand")


def _upstreams() -> Iterator[Finding]:
    for connector in _configuration().connectors:
        yield _guarded(f"upstream {connector.name}", partial(_connector, connector))
    for server in _servers():
        yield _guarded(f"upstream {server.name}", partial(_server, server))
    yield from _upstreams_elsewhere()


def _upstreams_elsewhere() -> Iterator[Finding]:
    """What gateways with another configuration served: from here nothing of it can be undone."""
    from django.conf import settings

    from reversi_site.recorded_upstreams import load_recorded, place_of, where_it_is

    for name, recorded in load_recorded(Path(settings.DATA)).items():
        place = place_of(_configuration(), name)
        if recorded.place not in (None, place):
            remedy = "name its own configuration with --config or REVERSI_CONFIG, or what it did stays"
            yield Finding(Level.WARN, f"upstream {name}", where_it_is(recorded.place, place), remedy)


def _servers() -> Sequence[UpstreamSpec]:
    from django.conf import settings

    from reversi_site.recorded_upstreams import load_recorded

    recorded = [each.spec for each in load_recorded(Path(settings.DATA)).values() if each.spec is not None]
    configured = {spec.name: spec for spec in _configuration().servers}
    return [*configured.values(), *(spec for spec in recorded if spec.name not in configured)]


def _server(spec: UpstreamSpec) -> Finding:
    """Open a session and list the tools: what a worker would have to do before it could undo anything there."""
    from gateway.sessions import Session

    name = f"upstream {spec.name}"
    if spec.is_live:
        return Finding(Level.OK, name, "its session is live: only the gateway that holds it undoes what it did")
    session = Session(spec)
    try:
        count = session.ask(lambda reached: reached.count_tools(spec.name), within_s=SERVER_S)
    except (ReversiError, TimeoutError) as error:
        remedy = "correct its command, or start it: until then nothing it did can be undone from here"
        return Finding(Level.FAIL, name, str(error) or f"did not answer within {SERVER_S:g} s", remedy)
    finally:
        session.close()
    return Finding(Level.OK, name, f"MCP server {spec.place}, {count} tools")


def _connector(upstream: ConnectorUpstream) -> Finding:
    from connectors.settings import build_connector

    connector = build_connector(
        upstream.connector, root=upstream.root, backup_dir=upstream.backup_dir, environ=os.environ
    )
    return Finding(Level.OK, f"upstream {upstream.name}", f"connector {connector.name}, {len(connector.tools)} tools")


def _commands() -> Iterator[Finding]:
    configuration = _configuration()
    if configuration.compensator_cmd:
        yield _command("compensator_cmd", configuration.compensator_cmd)
    if configuration.reader_cmd:
        yield _command("reader_cmd", configuration.reader_cmd)


def _command(name: str, command: str) -> Finding:
    try:
        program = shlex.split(command)[0]
    except ValueError as error:
        return Finding(Level.FAIL, name, f"{command}: {error}", "close the quotation")
    if shutil.which(program) is None:
        return Finding(
            Level.FAIL, name, f"{program} is not there or not executable", "correct the path, or chmod +x it"
        )
    return Finding(Level.OK, name, program)


def _clock() -> Iterator[Finding]:
    from reversi_site.kit.clock import SystemClock, database_now_ms

    skew = abs(int(SystemClock().now().timestamp() * 1000) - database_now_ms())
    fact = f"this machine and the database differ by {format_duration(skew)}"
    remedy = "synchronise both clocks (NTP)"
    if skew > SKEW_FAIL_MS:
        yield Finding(Level.FAIL, "clock", fact, remedy)
    elif skew > SKEW_WARN_MS:
        yield Finding(Level.WARN, "clock", fact, remedy)
    else:
        yield Finding(Level.OK, "clock", fact)


def _governance() -> Iterator[Finding]:
    from ledger.queries import check_governance_chain

    report = check_governance_chain()
    if report.problems:
        remedy = "compare with a backup: somebody changed the log"
        yield Finding(Level.FAIL, "governance log", "; ".join(report.problems), remedy)
        return
    yield Finding(Level.OK, "governance log", f"its chain of {report.count} events is whole")


def _rows() -> Iterator[Finding]:
    from ledger.queries import find_contradictions, list_runs

    runs = list_runs(limit=RUNS_LOOKED_AT)
    found = {run.id: rows for run in runs if (rows := find_contradictions(run.id))}
    for run_id, rows in found.items():
        fact = "; ".join(f"step {number}: {words}" for number, words in rows.items())
        remedy = f"`reversi ledger verify {run_id}`, compare with a backup: somebody changed the database"
        yield Finding(Level.FAIL, f"run {run_id}", fact, remedy)
    if not found:
        yield Finding(Level.OK, "runs", f"the steps of the {len(runs)} latest stand as their events say")


def _halts() -> Iterator[Finding]:
    from approvals.queries import list_halts

    path = _configuration().kill_switch_file
    if path is not None and path.exists():
        yield Finding(Level.WARN, "kill switch", f"{path} is there: every call is blocked", "`reversi kill-switch off`")
    count = len(list_halts(active_only=True))
    if count:
        yield Finding(Level.WARN, "halts", f"{count} stand and block calls", "`reversi halt list`, `reversi halt lift`")


CHECKS: Sequence[tuple[str, Callable[[], Iterator[Finding]]]] = (
    ("keys", _keys),
    ("worker", _worker),
    ("schedules", _schedules),
    ("manifests", _manifests),
    ("upstreams", _upstreams),
    ("commands", _commands),
    ("clock", _clock),
    ("governance log", _governance),
    ("runs", _rows),
    ("halts", _halts),
)
