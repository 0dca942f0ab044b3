"""Halts at work: stored, scoped, in force everywhere at once, and journaled (D19)."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError

from approvals.core.before import BeforeAnswer
from approvals.core.errors import BadCall, BeforeRequired, CallBlocked, HaltNotFound
from approvals.core.halts import HaltScope
from approvals.models import Halt
from approvals.operations.halts import add_halt, lift_halt
from approvals.queries import list_halts
from ledger.core.statuses import Mode
from ledger.models import GovernanceEvent
from ledger.queries import check_governance_chain, list_steps
from reversi_sdk.errors import InvalidInput
from tests.approvals.factories import LATER, NOW, begin, codes, complete, make_run
from tests.databases import Database
from tests.manifests_registry.factories import make_snapshot, shop

EVERYTHING = HaltScope()


def halt(*, reason: str = "too many charges", scope: HaltScope = EVERYTHING) -> tuple[str, int]:
    record, in_flight = add_halt(reason=reason, scope=scope, actor="dana", now=NOW)
    return record.id, in_flight


def blocked_codes(run_id: str, **fields: Any) -> list[str]:
    with pytest.raises(CallBlocked) as caught:
        begin(run_id=run_id, **fields)
    return codes(caught.value)


@pytest.mark.parametrize("mode", list(Mode))
def test_halt_blocks_in_every_mode_with_its_reason(db: Database, mode: Mode) -> None:
    run = make_run(mode=mode)
    halt()

    with pytest.raises(CallBlocked) as caught:
        begin(run_id=run.id)

    assert [violation.to_json() for violation in caught.value.violations] == [
        {"code": "halted", "message": "kill switch: too many charges"}
    ]


def test_halt_leaves_other_calls_alone(db: Database) -> None:
    run = make_run(actor="billing")
    halt(scope=HaltScope(tool="bank.*"))
    halt(scope=HaltScope(actor="sales"))
    halt(scope=HaltScope(tenant="*"))

    assert begin(run_id=run.id).violations == ()


def test_halt_lets_calls_in_flight_complete_and_counts_them(db: Database) -> None:
    run, other = make_run(actor="billing"), make_run(actor="sales")
    begin(run_id=run.id)
    begin(run_id=run.id)
    begin(run_id=other.id)
    complete(run_id=run.id, number=0)

    _, in_flight = halt(scope=HaltScope(actor="billing"))

    assert in_flight == 1
    assert complete(run_id=run.id, number=1).number == 1


def test_lift_halt_lets_calls_pass_again(db: Database) -> None:
    run = make_run()
    first, _ = halt()
    halt(reason="another")

    assert lift_halt(id=first, actor="erin", now=LATER) == 1
    assert blocked_codes(run.id) == ["halted"]
    assert lift_halt(id=None, actor="erin", now=LATER) == 1

    assert begin(run_id=run.id).step.number == 0
    assert list_halts() == []
    lifted = list_halts(active_only=False)
    assert [(each.lifted_by, each.lifted_at) for each in lifted] == [("erin", LATER), ("erin", LATER)]


def test_lift_halt_counts_only_what_it_lifted(db: Database) -> None:
    halt_id, _ = halt()
    lift_halt(id=halt_id, actor="erin", now=LATER)

    assert lift_halt(id=halt_id, actor="fred", now=LATER) == 0
    assert lift_halt(id=None, actor="fred", now=LATER) == 0
    with pytest.raises(HaltNotFound):
        lift_halt(id="halt_none", actor="fred", now=LATER)


def test_halts_are_in_the_governance_log(db: Database) -> None:
    halt_id, _ = halt(scope=HaltScope(tool="shop.*"))
    lift_halt(id=None, actor="erin", now=LATER)

    acts = [(event.kind, event.actor) for event in GovernanceEvent.objects.order_by("seq")]

    assert acts == [("halt_added", "dana"), ("halt_lifted", "erin")]
    assert halt_id.encode() in bytes(GovernanceEvent.objects.get(seq=0).data)
    assert check_governance_chain().problems == ()


MALFORMED: dict[str, tuple[str, HaltScope]] = {
    "blank reason": (" ", EVERYTHING),
    "reason with a NUL byte": ("a\0", EVERYTHING),
    "reason too long": ("x" * 501, EVERYTHING),
    "empty glob": ("stop", HaltScope(tool="")),
    "glob with a NUL byte": ("stop", HaltScope(run="\0")),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_add_halt_refuses(sqlite_db: Database, case: str) -> None:
    reason, scope = MALFORMED[case]

    with pytest.raises(InvalidInput):
        add_halt(reason=reason, scope=scope, actor="dana", now=NOW)

    assert not Halt.objects.exists()


def test_add_halt_needs_an_actor(sqlite_db: Database) -> None:
    with pytest.raises(BadCall):
        add_halt(reason="stop", scope=EVERYTHING, actor="", now=NOW)


def test_lifted_halt_has_who_and_when(db: Database) -> None:
    halt()

    with pytest.raises(IntegrityError):
        Halt.objects.update(lifted_at=LATER)


CALL_IN_ANOTHER_PROCESS = """
import sys, django; django.setup()
from tests.approvals.factories import begin
from approvals.core.errors import CallBlocked
for line in sys.stdin:
    try:
        begin(run_id=line.strip())
    except CallBlocked as blocked:
        print(blocked.violations[0].message, flush=True)
    else:
        print("passed", flush=True)
"""


def test_halt_is_in_force_in_another_process_when_add_halt_returned(db: Database) -> None:
    run = make_run()
    with subprocess.Popen(
        [sys.executable, "-c", CALL_IN_ANOTHER_PROCESS],
        env=db.env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None

        def call() -> str:
            print(run.id, file=other.stdin, flush=True)
            return str(other.stdout and other.stdout.readline().strip())

        seen = [call()]
        for turn in range(3):
            halt(reason=f"turn {turn}")
            seen.append(call())
            lift_halt(id=None, actor="dana", now=LATER)
            seen.append(call())
        other.stdin.close()

    assert seen == [
        "passed",
        *(word for turn in range(3) for word in (f"kill switch: turn {turn}", "passed")),
    ]


KILL_FILES: dict[str, tuple[bytes, str]] = {
    "first line": (b"pager 12\nmore\n", "kill switch: pager 12"),
    "empty": (b"", "kill switch: kill file"),
    "blank": (b"  \n", "kill switch: kill file"),
    "not text": (b"\xff\x1b[31mred", "kill switch: \ufffd\\u{1b}[31mred"),
}


@pytest.mark.parametrize("case", KILL_FILES)
def test_kill_file_halts_everything_with_its_first_line(
    sqlite_db: Database, tmp_path: Path, configure: Any, case: str
) -> None:
    content, message = KILL_FILES[case]
    kill_file = tmp_path / "kill"
    configure(kill_switch_file=kill_file)
    run = make_run()
    begin(run_id=run.id)

    kill_file.write_bytes(content)
    with pytest.raises(CallBlocked) as caught:
        begin(run_id=run.id)
    kill_file.unlink()

    assert [violation.message for violation in caught.value.violations] == [message]
    assert begin(run_id=run.id).step.number == 1


def test_kill_file_under_what_is_no_folder_is_not_there(sqlite_db: Database, tmp_path: Path, configure: Any) -> None:
    (tmp_path / "file").touch()
    configure(kill_switch_file=tmp_path / "file" / "kill")

    assert begin(run_id=make_run().id).violations == ()


def test_kill_file_that_cannot_be_read_halts(sqlite_db: Database, tmp_path: Path, configure: Any) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    run = make_run()

    for name in ("folder", "dangling"):
        configure(kill_switch_file=tmp_path / name)
        assert blocked_codes(run.id) == ["halted"]


def test_halt_added_while_the_state_before_is_read_stops_the_call(db: Database) -> None:
    # What the gate saw before the read is old when the call is announced.
    snapshot = shop(before={"tool": "shop.get", "arguments": {}})
    run = make_run()
    with pytest.raises(BeforeRequired):
        begin(run_id=run.id, snapshot=snapshot)
    halt()

    assert blocked_codes(run.id, snapshot=snapshot, before=BeforeAnswer(value={})) == ["halted"]
    assert list_steps(run.id) == []


def test_halt_is_listed_with_all_other_violations(db: Database) -> None:
    run = make_run(scope=())
    halt(reason="one")
    halt(reason="two")

    assert blocked_codes(run.id) == ["halted", "halted", "permission"]
    assert blocked_codes(run.id, snapshot=make_snapshot()) == ["halted", "halted", "no_manifest"]
