"""A call that waits for people: asked once, approved by others than its owner, used once and for nothing else (D17)."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from approvals.core.before import BeforeAnswer
from approvals.core.doors import read_request
from approvals.core.errors import (
    AlreadyVoted,
    ApprovalAnswered,
    ApprovalNotFound,
    ApprovalRequired,
    ApprovalSpent,
    BadCall,
    BeforeRequired,
    CallBlocked,
    NotEligible,
    WiderThanKey,
)
from approvals.core.halts import HaltScope
from approvals.core.people import Caller, Limits
from approvals.core.requests import LIVE, ApprovalRecord, RequestState
from approvals.models import ApprovalRequest, SealedArguments
from approvals.operations.admission import Candidate
from approvals.operations.approvals import cast_vote, expire_approvals
from approvals.operations.halts import add_halt
from approvals.operations.requests import Granted, use_up
from approvals.operations.requests import ask as ask_about
from approvals.queries import get_approval, list_approvals
from ledger.core.errors import BadField, ForeignRun
from ledger.models import GovernanceEvent
from ledger.operations.journal import lock_run
from ledger.operations.runs import close_run
from ledger.queries import check_governance_chain, check_run_chain, list_steps
from reversi_site.kit.transactions import durable
from tests.approvals.conftest import Configure
from tests.approvals.factories import ARGS, NOW, begin, codes, complete, kinds, last_event, make_run
from tests.approvals.people import acts, approve, ask, person
from tests.databases import Database
from tests.gateway.factories import Tool, make_call
from tests.manifests_registry.factories import READ, make_snapshot, shop

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
QUARTER = timedelta(minutes=15)
SECOND = timedelta(seconds=1)
ASKING = shop(approval="always")
TWO = {"roles": ["operator", "admin"], "quorum": 2}
SECRET = "s3cr3t-of-the-customer"
BEFORE = {"tool": "shop.get", "arguments": {"id": "$args.item"}}


def repeat(run_id: str, **fields: Any) -> str:
    """Make the call once more and say how that ended."""
    try:
        begin(**{"run_id": run_id, "snapshot": ASKING, **fields})
    except ApprovalRequired as waiting:
        return waiting.approval.id
    except CallBlocked as blocked:
        return ",".join(f"{each.code.value}: {each.message}" for each in blocked.violations)
    return "passed"


def test_a_call_that_needs_approval_opens_a_request(db: Database) -> None:
    run = make_run(actor="billing")
    wanted = {"roles": ["finance", "legal"], "quorum": 2, "timeout": "1h"}
    snapshot = shop(approval=wanted, summary="order {{args.item}}")

    approval = ask(run_id=run.id, snapshot=snapshot, reason="invoice 12")

    assert (approval.state, approval.roles, approval.quorum) == (RequestState.PENDING, ("finance", "legal"), 2)
    assert (approval.requested_by, approval.run_principal, approval.reason) == ("billing", "agent-a", "invoice 12")
    assert (approval.summary, approval.effect_label) == ("order book", "write, can be undone")
    assert (approval.created_at, approval.deadline_at) == (NOW, NOW + HOUR)
    assert approval.arguments == ARGS
    assert list_steps(run.id) == []
    assert kinds(run.id) == ["opened", "approval_requested"]
    assert check_run_chain(run.id).problems == ()


def test_a_repeat_meets_the_same_request_and_records_nothing(db: Database) -> None:
    run = make_run()
    approval = ask(run_id=run.id)
    before = kinds(run.id)

    assert repeat(run.id) == repeat(run.id) == approval.id
    assert kinds(run.id) == before


def test_an_approval_lets_one_call_pass(db: Database) -> None:
    run = make_run()
    approval = approve(approval=ask(run_id=run.id), reason="looked at it")

    begun = begin(run_id=run.id, snapshot=ASKING)

    assert (approval.state, approval.use_until) == (RequestState.APPROVED, NOW + DAY)
    used = get_approval(approval.id, now=NOW)
    assert (used.state, used.used_by_step, used.used_at) == (RequestState.USED, begun.step.number, NOW)
    assert kinds(run.id) == ["opened", "approval_requested", "intended", "approval_used"]
    assert last_event(run.id).data == {"approval": approval.id}
    assert check_run_chain(run.id).problems == ()


def test_an_approval_is_used_once(db: Database) -> None:
    run = make_run()
    approval = approve(approval=ask(run_id=run.id))
    begin(run_id=run.id, snapshot=ASKING)
    complete(run_id=run.id, number=0)

    again = repeat(run.id)

    assert again.startswith("apr_")
    assert again != approval.id


OTHER_CALLS: dict[str, Callable[[str], str]] = {
    "other arguments": lambda run_id: repeat(run_id, args={**ARGS, "item": "pen"}),
    "more arguments": lambda run_id: repeat(run_id, args={**ARGS, "amount": 1}),
    "the arguments as texts": lambda run_id: repeat(run_id, args={**ARGS, "item": ["book"]}),
    "another run": lambda _: repeat(make_run().id),
    "another manifest": lambda run_id: repeat(run_id, snapshot=shop(approval="always", description="changed")),
    "another tool": lambda run_id: repeat(
        run_id,
        tool="shop.pay",
        snapshot=make_snapshot({"tool": "shop.pay", "approval": "always"}),
    ),
}


@pytest.mark.parametrize("case", OTHER_CALLS)
def test_an_approval_is_for_nothing_but_its_call(db: Database, case: str) -> None:
    run = make_run()
    approval = approve(approval=ask(run_id=run.id))

    ending = OTHER_CALLS[case](run.id)

    assert ending.startswith("apr_")
    assert ending != approval.id
    assert list_steps(run.id) == []


def test_the_order_of_arguments_makes_no_other_call(sqlite_db: Database) -> None:
    run = make_run()
    approve(approval=ask(run_id=run.id))

    assert repeat(run.id, args=dict(reversed(ARGS.items()))) == "passed"


def test_an_approval_of_another_principal_is_of_no_use(sqlite_db: Database) -> None:
    run = make_run()
    approve(approval=ask(run_id=run.id))

    with pytest.raises(ForeignRun):
        begin(run_id=run.id, principal="eve", snapshot=ASKING)


def test_a_denied_call_is_blocked_with_the_reason(db: Database) -> None:
    run = make_run()
    approval = approve(approval=ask(run_id=run.id), decision="deny", reason="wrong account")

    assert (approval.state, approval.denied_reason) == (RequestState.DENIED, "wrong account")
    assert repeat(run.id) == "approval_denied: approval denied: wrong account"
    assert kinds(run.id)[-1] == "blocked"
    assert list_steps(run.id) == []


def test_a_denial_without_words_says_so(sqlite_db: Database) -> None:
    run = make_run()
    approve(approval=ask(run_id=run.id), decision="deny")

    assert repeat(run.id) == "approval_denied: approval denied: no reason given"


def later(run_id: str, at: datetime) -> str:
    return repeat(run_id, now=at)


def test_an_unanswered_request_expires_and_a_repeat_opens_another(db: Database) -> None:
    run = make_run()
    approval = ask(run_id=run.id)

    assert later(run.id, NOW + DAY) == approval.id
    assert get_approval(approval.id, now=NOW + DAY + SECOND).state is RequestState.EXPIRED
    second = later(run.id, NOW + DAY + SECOND)

    assert second not in (approval.id, "passed")
    assert ApprovalRequest.objects.get(pk=approval.id).state == "expired"
    assert acts() == ["approval_ended"]


def test_an_approval_lapses(db: Database) -> None:
    run = make_run()
    approval = approve(approval=ask(run_id=run.id, approval={"timeout": "1m"}))
    snapshot = shop(approval={"timeout": "1m"})

    late = repeat(run.id, snapshot=snapshot, now=NOW + QUARTER + SECOND)

    assert approval.use_until == NOW + QUARTER
    assert late not in (approval.id, "passed")
    assert list_steps(run.id) == []


def test_an_approval_can_be_used_to_its_last_moment(sqlite_db: Database) -> None:
    run = make_run()
    approve(approval=ask(run_id=run.id))

    assert later(run.id, NOW + DAY) == "passed"


def test_a_new_manifest_cancels_what_was_asked_under_the_old(db: Database) -> None:
    run = make_run()
    approval = approve(approval=ask(run_id=run.id))
    changed = shop(approval="always", description="changed")

    second = repeat(run.id, snapshot=changed)

    assert get_approval(approval.id, now=NOW).state is RequestState.CANCELLED
    assert get_approval(second, now=NOW).state is RequestState.PENDING
    assert repeat(run.id) not in (approval.id, "passed")


def test_observe_mode_asks_nobody(db: Database) -> None:
    run = make_run(mode="observe")

    begun = begin(run_id=run.id, snapshot=ASKING)

    assert begun.notes == ("approval required; not asked in observe mode",)
    assert list_approvals(now=NOW) == []


def test_the_gateway_raises_on_and_runs_nothing_until_people_agreed(db: Database) -> None:
    run, tool = make_run(), Tool({"id": "o1"})
    with pytest.raises(ApprovalRequired) as caught:
        make_call(run_id=run.id, execute=tool, snapshot=ASKING)
    assert (tool.sent, kinds(run.id)) == ([], ["opened", "approval_requested"])

    approve(approval=caught.value.approval)
    make_call(run_id=run.id, execute=tool, snapshot=ASKING)

    assert len(tool.sent) == 1
    assert kinds(run.id)[2:] == ["intended", "approval_used", "succeeded"]


def test_nobody_is_asked_about_a_call_that_is_blocked_anyway(sqlite_db: Database) -> None:
    run = make_run(scope=())

    assert repeat(run.id).startswith("permission: ")
    assert list_approvals(now=NOW) == []


def test_a_halt_stops_an_approved_call_and_keeps_its_approval(db: Database) -> None:
    run = make_run()
    approval = approve(approval=ask(run_id=run.id))
    add_halt(reason="stop", scope=HaltScope(), actor="dana", now=NOW)

    assert repeat(run.id) == "halted: kill switch: stop"
    assert get_approval(approval.id, now=NOW).state is RequestState.APPROVED


def test_people_are_asked_before_the_state_before_is_read(db: Database) -> None:
    run, snapshot = make_run(), shop(approval="always", before=BEFORE)
    approval = ask(run_id=run.id, snapshot=snapshot)
    approve(approval=approval)

    with pytest.raises(BeforeRequired):
        begin(run_id=run.id, snapshot=snapshot)
    assert get_approval(approval.id, now=NOW).state is RequestState.APPROVED

    begin(run_id=run.id, snapshot=snapshot, before=BeforeAnswer(value={"state": "new"}))

    assert get_approval(approval.id, now=NOW).state is RequestState.USED


def test_a_denied_call_is_not_read_for(sqlite_db: Database) -> None:
    run, snapshot = make_run(), shop(approval="always", before=BEFORE)
    approve(approval=ask(run_id=run.id, snapshot=snapshot), decision="deny", reason="no")

    assert repeat(run.id, snapshot=snapshot) == "approval_denied: approval denied: no"


def test_a_read_that_fails_leaves_the_approval_unused(sqlite_db: Database) -> None:
    run, snapshot = make_run(), shop(approval="always", before=BEFORE)
    approval = approve(approval=ask(run_id=run.id, snapshot=snapshot))

    with pytest.raises(CallBlocked) as caught:
        begin(run_id=run.id, snapshot=snapshot, before=BeforeAnswer(error="away"))

    assert codes(caught.value) == ["before_failed"]
    assert get_approval(approval.id, now=NOW).state is RequestState.APPROVED


def test_a_quorum_needs_as_many_people(db: Database) -> None:
    run, snapshot = make_run(), shop(approval=TWO)
    approval = ask(run_id=run.id, snapshot=snapshot)

    first = approve(approval=approval)
    assert repeat(run.id, snapshot=snapshot) == approval.id
    second = approve(approval=approval, by=person("admin", name="eli"))

    assert (first.state, second.state) == (RequestState.PENDING, RequestState.APPROVED)
    assert [(vote.voter, vote.role) for vote in second.votes] == [("dana", "operator"), ("eli", "admin")]
    assert repeat(run.id, snapshot=snapshot) == "passed"
    assert acts() == ["approval_voted", "approval_voted"]
    assert check_governance_chain().problems == ()


def test_one_denial_outweighs_an_approval(sqlite_db: Database) -> None:
    approval = ask(approval=TWO)
    approve(approval=approval)

    assert approve(approval=approval, by=person(name="eli"), decision="deny").state is RequestState.DENIED


VOTERS: dict[str, tuple[Caller, Any]] = {
    "the owner": (person("admin", name="agent-a"), "always"),
    "an agent": (person("agent"), "always"),
    "an auditor": (person("auditor"), "always"),
    "nobody in particular": (Caller("dana", frozenset()), "always"),
    "an operator where finance is asked": (person("operator"), {"roles": ["finance"]}),
    "an agent's key of an operator": (Caller("dana", frozenset({"agent"}), Limits(), "k"), "always"),
}


@pytest.mark.parametrize("case", VOTERS)
def test_cast_vote_is_not_for(db: Database, case: str) -> None:
    voter, wanted = VOTERS[case]
    approval = ask(approval=wanted)

    for decision in ("approve", "deny"):
        with pytest.raises(NotEligible):
            approve(approval=approval, by=voter, decision=decision)

    assert get_approval(approval.id, now=NOW).votes == ()


def test_a_key_votes_only_where_it_reaches(sqlite_db: Database) -> None:
    approval = ask(run_id=make_run(tenant="acme").id)

    with pytest.raises(WiderThanKey):
        approve(approval=approval, by=Caller("dana", frozenset({"operator"}), Limits(tenant="other")))


def test_everybody_votes_once(db: Database) -> None:
    approval = ask(approval=TWO)
    approve(approval=approval)

    for decision in ("approve", "deny"):
        with pytest.raises(AlreadyVoted):
            approve(approval=approval, decision=decision)


def answered(sequence: Sequence[str]) -> ApprovalRecord:
    approval = ask()
    for decision in sequence:
        approve(approval=approval, decision=decision)
    return approval


@pytest.mark.parametrize(("decision", "at"), [("approve", NOW), ("deny", NOW), (None, NOW + DAY + SECOND)])
def test_an_answered_request_takes_no_more_votes(db: Database, decision: str | None, at: datetime) -> None:
    approval = answered([] if decision is None else [decision])

    with pytest.raises(ApprovalAnswered):
        approve(approval=approval, by=person(name="eli"), now=at)


def test_cast_vote_needs_a_request_and_a_decision(sqlite_db: Database) -> None:
    approval = ask()

    with pytest.raises(BadCall):
        approve(approval=approval, decision="maybe")
    with pytest.raises(BadField):
        approve(approval=approval, reason="a\0b")
    with pytest.raises(ApprovalNotFound):
        cast_vote(approval_id="apr_none", voter=person(), decision="approve", now=NOW)
    with pytest.raises(ApprovalNotFound):
        get_approval("apr_none", now=NOW)


def test_a_vote_is_in_the_governance_log_with_how_the_voter_was_known(sqlite_db: Database) -> None:
    approve(approval=ask(), reason="looked\u202e at it", via="command line of local:ada")

    act = json.loads(bytes(GovernanceEvent.objects.get(kind="approval_voted").data))
    assert (act["voter"], act["decision"], act["role"], act["via"]) == (
        "dana",
        "approve",
        "operator",
        "command line of local:ada",
    )
    assert act["reason"] == "looked\\u{202e} at it"


def everything_stored() -> bytes:
    """Every byte of the approvals' tables and of both logs."""
    found = b""
    with connection.cursor() as cursor:
        for table in (name for name in connection.introspection.table_names() if name.startswith(("approvals", "led"))):
            cursor.execute(f'SELECT * FROM "{table}"')
            found += b"|".join(
                bytes(cell) if isinstance(cell, (bytes, memoryview)) else str(cell).encode()
                for row in cursor.fetchall()
                for cell in row
            )
    return found


def test_arguments_are_sealed_while_a_request_lives(db: Database) -> None:
    approval = ask(args={**ARGS, "note": SECRET}, snapshot=shop(approval="always", summary="an order"))

    assert SECRET.encode() not in everything_stored()
    shown = get_approval(approval.id, now=NOW).arguments
    assert shown is not None
    assert shown["note"] == SECRET


def test_redacted_arguments_are_not_even_sealed(sqlite_db: Database) -> None:
    snapshot = shop(approval="always", audit={"redaction": ["$args.card"]})

    approval = ask(args={**ARGS, "card": SECRET, "api_key": SECRET}, snapshot=snapshot)

    assert approval.arguments == {**ARGS, "card": "[redacted]", "api_key": "[redacted]"}
    assert SECRET not in str(approval.to_json())


def end_by_use(approval: ApprovalRecord) -> None:
    approve(approval=approval)
    assert repeat(approval.run_id) == "passed"


ENDS: dict[str, tuple[Callable[[ApprovalRecord], object], str]] = {
    "used": (end_by_use, "used"),
    "denied": (lambda approval: approve(approval=approval, decision="deny"), "denied"),
    "expired": (lambda approval: expire_approvals(now=NOW + DAY + SECOND), "expired"),
    "cancelled": (lambda approval: repeat(approval.run_id, snapshot=shop(approval="always", owner="x")), "cancelled"),
}


@pytest.mark.parametrize("case", ENDS)
def test_arguments_are_gone_when_a_request_has_ended(db: Database, case: str) -> None:
    end, state = ENDS[case]
    approval = ask()

    end(approval)

    ended = get_approval(approval.id, now=NOW + DAY)
    assert (ended.state.value, ended.arguments) == (state, None)
    assert not SealedArguments.objects.filter(pk=approval.id).exists()


def test_arguments_that_were_altered_or_purged_are_not_shown(sqlite_db: Database) -> None:
    approval = ask()

    SealedArguments.objects.update(ciphertext=b"x" * 40)
    altered = get_approval(approval.id, now=NOW)
    SealedArguments.objects.all().delete()
    purged = get_approval(approval.id, now=NOW)

    assert (altered.arguments, purged.arguments) == (None, None)
    assert purged.state is RequestState.PENDING


def test_nobody_is_asked_about_a_tool_without_a_manifest(sqlite_db: Database) -> None:
    run = make_run()
    request = read_request(
        run_id=run.id,
        principal=run.principal,
        tool="shop.order",
        args=ARGS,
        reason="",
        depends_on=(),
        idempotency_key=None,
        manifest=None,
    )
    unknown = Candidate(request, None, None, (), "gateway", "shop")

    with pytest.raises(ValueError, match="has no manifest"), durable():
        ask_about(run=lock_run(run.id), candidate=unknown, now=NOW)


def test_an_approval_that_nobody_gave_cannot_be_used(db: Database) -> None:
    approval = ask()

    with pytest.raises(ApprovalSpent), durable():
        use_up(run=lock_run(approval.run_id), granted=Granted(approval.id), number=0, now=NOW)

    assert get_approval(approval.id, now=NOW).state is RequestState.PENDING


def test_expire_approvals_ends_what_nobody_can_answer_or_use(db: Database) -> None:
    late, lapsed = ask(args={"item": "a"}), approve(approval=ask(args={"item": "b"}))
    closed, fresh = ask(args={"item": "c"}), ask(args={"item": "d"}, now=NOW + DAY)
    close_run(run_id=closed.run_id, actor="dana", now=NOW)

    ended = expire_approvals(now=NOW + DAY + SECOND)

    states = {each.id: each.state.value for each in list_approvals(now=NOW + DAY + SECOND)}
    assert states == {late.id: "expired", lapsed.id: "expired", closed.id: "expired", fresh.id: "pending"}
    assert ended == 3
    assert expire_approvals(now=NOW + DAY + SECOND) == 0
    assert acts().count("approval_ended") == 3


def test_expire_approvals_cancels_those_of_a_closed_run(sqlite_db: Database) -> None:
    approval = ask()
    close_run(run_id=approval.run_id, actor="dana", now=NOW)

    assert expire_approvals(now=NOW) == 1
    assert get_approval(approval.id, now=NOW).state is RequestState.CANCELLED


def test_expire_approvals_cancels_what_the_configured_manifests_changed(
    sqlite_db: Database, configure: Configure, tmp_path: Any
) -> None:
    kept = ask(args={"item": "a"}, tool="shop.pay", snapshot=make_snapshot({"tool": "shop.pay", "approval": "always"}))
    changed = ask(args={"item": "b"}, tool="shop.get", snapshot=make_snapshot({**READ, "approval": "always"}))
    (tmp_path / "tools.json").write_text(json.dumps({**READ, "approval": "always", "description": "changed"}))
    configure(manifests=(tmp_path / "tools.json",))

    assert expire_approvals(now=NOW) == 1
    assert get_approval(kept.id, now=NOW).state is RequestState.PENDING
    assert get_approval(changed.id, now=NOW).state is RequestState.CANCELLED


def test_list_approvals_is_newest_first_and_goes_on_after_a_cursor(sqlite_db: Database) -> None:
    run = make_run()
    asked = [ask(run_id=run.id, args={"item": str(n)}, now=NOW + n * SECOND).id for n in range(3)]
    other = ask(run_id=make_run(principal="agent-b").id, principal="agent-b", now=NOW + HOUR).id

    ids = [each.id for each in list_approvals(now=NOW)]
    after = [each.id for each in list_approvals(now=NOW, before=asked[2], limit=1)]
    mine = [each.id for each in list_approvals(now=NOW, principal="agent-b")]
    of_run = [each.id for each in list_approvals(now=NOW, run_id=run.id)]

    assert ids == [other, *reversed(asked)]
    assert (after, mine, of_run) == ([asked[1]], [other], list(reversed(asked)))


def test_list_approvals_chooses_by_the_state_as_of_now(sqlite_db: Database) -> None:
    approval = ask()

    assert [each.id for each in list_approvals(now=NOW, states=LIVE)] == [approval.id]
    assert list_approvals(now=NOW + DAY + SECOND, states=LIVE) == []
    assert [each.id for each in list_approvals(now=NOW + DAY + SECOND, states=[RequestState.EXPIRED])] == [approval.id]


def test_list_approvals_shows_a_caller_only_what_is_theirs(sqlite_db: Database) -> None:
    mine = ask(approval={"roles": ["finance"]}).id

    seen = {
        name: [each.id for each in list_approvals(now=NOW, caller=caller)]
        for name, caller in {
            "owner": person("agent", name="agent-a"),
            "eve": person("agent", name="eve"),
            "finance": person("finance"),
            "legal": person("legal"),
        }.items()
    }

    assert seen == {"owner": [mine], "eve": [], "finance": [mine], "legal": []}
