"""Votes and what they come to, and what an approver is shown (D17)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.core.people import Caller
from approvals.core.redaction import REDACTED, redaction_paths
from approvals.core.requests import (
    ApprovalRecord,
    Decision,
    RequestKind,
    RequestState,
    VoteRecord,
    deadline_of,
    may_see,
    state_at,
    tally,
    use_until,
    voting_role,
    why_not_vote,
)
from approvals.core.shown_arguments import shown_arguments

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
OWNER = "bot"


def vote(voter: str, decision: Decision = Decision.APPROVE) -> VoteRecord:
    return VoteRecord(voter, decision, "operator", "", NOW)


REQUEST = ApprovalRecord(
    id="apr_1",
    kind=RequestKind.CALL,
    run_id="run_1",
    step=None,
    tool="bank.pay",
    args_digest="d" * 64,
    manifest_checksum="c" * 64,
    state=RequestState.PENDING,
    roles=(),
    quorum=1,
    deadline_at=NOW + HOUR,
    use_until=None,
    requested_by="billing",
    run_principal=OWNER,
    reason="",
    summary="bank.pay",
    effect="irreversible",
    arguments={"amount": 5},
    created_at=NOW,
    answered_at=None,
    used_at=None,
    used_by_step=None,
    denied_reason="",
)


def person(*roles: str, name: str = "dana") -> Caller:
    return Caller(name, frozenset(roles))


TALLIES: dict[str, tuple[list[VoteRecord], int, RequestState]] = {
    "nobody": ([], 1, RequestState.PENDING),
    "one of one": ([vote("dana")], 1, RequestState.APPROVED),
    "one of two": ([vote("dana")], 2, RequestState.PENDING),
    "two of two": ([vote("dana"), vote("eli")], 2, RequestState.APPROVED),
    "twice the same": ([vote("dana"), vote("dana")], 2, RequestState.PENDING),
    "the owner": ([vote(OWNER), vote("dana")], 2, RequestState.PENDING),
    "one denial": ([vote("dana"), vote("eli", Decision.DENY)], 1, RequestState.DENIED),
    "the owner's denial": ([vote(OWNER, Decision.DENY)], 1, RequestState.PENDING),
}


@pytest.mark.parametrize("case", TALLIES)
def test_tally(case: str) -> None:
    votes, quorum, outcome = TALLIES[case]

    assert tally(votes, quorum=quorum, owner=OWNER) is outcome


some_votes = st.lists(
    st.builds(vote, st.sampled_from([OWNER, "dana", "eli", "fay"]), st.sampled_from(Decision)), max_size=6
)


@given(votes=some_votes, quorum=st.integers(1, 3), data=st.data())
def test_tally_ignores_order_repeats_and_the_owner(votes: list[VoteRecord], quorum: int, data: st.DataObject) -> None:
    outcome = tally(votes, quorum=quorum, owner=OWNER)

    shuffled = data.draw(st.permutations([*votes, *votes, vote(OWNER), vote(OWNER, Decision.DENY)]))

    assert tally(shuffled, quorum=quorum, owner=OWNER) is outcome


@given(votes=some_votes, quorum=st.integers(1, 3))
def test_tally_approves_only_with_as_many_people_as_were_asked_for(votes: list[VoteRecord], quorum: int) -> None:
    others = [each for each in votes if each.voter != OWNER]
    approvers = {each.voter for each in others if each.decision is Decision.APPROVE}
    is_denied = any(each.decision is Decision.DENY for each in others)

    is_approved = tally(votes, quorum=quorum, owner=OWNER) is RequestState.APPROVED

    assert is_approved is (len(approvers) >= quorum and not is_denied)


TIMES: dict[str, tuple[RequestState, timedelta, RequestState]] = {
    "pending in time": (RequestState.PENDING, HOUR, RequestState.PENDING),
    "pending too late": (RequestState.PENDING, HOUR + timedelta(seconds=1), RequestState.EXPIRED),
    "approved in time": (RequestState.APPROVED, 2 * HOUR, RequestState.APPROVED),
    "approved and lapsed": (RequestState.APPROVED, 2 * HOUR + timedelta(seconds=1), RequestState.EXPIRED),
    "denied for good": (RequestState.DENIED, 100 * HOUR, RequestState.DENIED),
    "used for good": (RequestState.USED, 100 * HOUR, RequestState.USED),
}


@pytest.mark.parametrize("case", TIMES)
def test_state_at(case: str) -> None:
    stored, passed, state = TIMES[case]

    assert state_at(stored, deadline_at=NOW + HOUR, use_until=NOW + 2 * HOUR, now=NOW + passed) is state


@pytest.mark.parametrize(("timeout_ms", "time"), [(None, timedelta(hours=24)), (60_000, timedelta(minutes=1))])
def test_deadline_of(timeout_ms: int | None, time: timedelta) -> None:
    assert deadline_of(timeout_ms, now=NOW) == NOW + time


@pytest.mark.parametrize(("answer_time", "use_time"), [(HOUR, HOUR), (timedelta(minutes=1), timedelta(minutes=15))])
def test_use_until_is_the_time_to_answer_and_at_least_a_quarter_of_an_hour(
    answer_time: timedelta, use_time: timedelta
) -> None:
    until = use_until(created_at=NOW, deadline_at=NOW + answer_time, answered_at=NOW + timedelta(seconds=5))

    assert until == NOW + timedelta(seconds=5) + use_time


VOTERS: dict[str, tuple[Caller, dict[str, Any], str | None]] = {
    "an operator where no role is named": (person("operator"), {}, None),
    "an admin where no role is named": (person("admin"), {}, None),
    "a reviewer where no role is named": (person("reviewer"), {}, "only operator or admin may vote on it"),
    "finance where finance is asked": (person("finance"), {"roles": ("finance",)}, None),
    "an admin where finance is asked": (person("admin"), {"roles": ("finance",)}, "only finance may vote on it"),
    "an agent": (person("agent"), {}, "only operator or admin may vote on it"),
    "an agent where agents are asked": (person("agent"), {"roles": ("agent",)}, "only agent may vote on it"),
    "an auditor where auditors are asked": (person("auditor"), {"roles": ("auditor",)}, "only auditor may vote on it"),
    "the owner": (person("admin", name=OWNER), {}, "nobody approves the calls of their own run"),
    "who has voted": (person("operator"), {"votes": (vote("dana"),), "quorum": 2}, "you have voted on it"),
    "too late": (person("operator"), {"state": RequestState.DENIED}, "it is already denied"),
}


@pytest.mark.parametrize("case", VOTERS)
def test_why_not_vote(case: str) -> None:
    who, fields, why = VOTERS[case]

    assert why_not_vote(who, replace(REQUEST, **fields)) == why


def test_voting_role_is_the_first_of_the_request_that_the_voter_holds() -> None:
    request = replace(REQUEST, roles=("finance", "legal"))

    assert voting_role(person("legal", "finance", "admin"), request) == "finance"


SEEN: dict[str, tuple[Caller, bool]] = {
    "its owner": (person("agent", name=OWNER), True),
    "another agent": (person("agent", name="eve"), False),
    "finance": (person("finance"), True),
    "legal": (person("legal"), False),
    "an operator": (person("operator"), True),
    "an auditor": (person("auditor"), True),
    "its owner without a role": (person(name=OWNER), False),
}


@pytest.mark.parametrize("case", SEEN)
def test_may_see(case: str) -> None:
    who, is_seen = SEEN[case]

    assert may_see(who, replace(REQUEST, roles=("finance",))) is is_seen


def test_approval_record_shows_the_effect_in_words() -> None:
    shown = REQUEST.to_json()

    assert shown["effect_label"] == "write, cannot be undone"
    assert (shown["state"], shown["principal"], shown["arguments"]) == ("pending", OWNER, {"amount": 5})


PATHS = redaction_paths(None, ["request.card.number", "$args.notes[1]"])
SHOWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({"a": 1, "b": [True, None, 0.5]}, {"a": 1, "b": [True, None, 0.5]}),
    "redacted": ({"card": {"number": "4111", "name": "D"}}, {"card": {"number": REDACTED, "name": "D"}}),
    "redacted item": ({"notes": ["a", "b"]}, {"notes": ["a", REDACTED]}),
    "credential": ({"to": {"api_key": "k", "password": 5}}, {"to": {"api_key": REDACTED, "password": REDACTED}}),
    "bidi": ({"to": "ab\u202ecd"}, {"to": "ab\\u{202e}cd"}),
    "control in a name": ({"t\u0007o": 1}, {"t\\u{7}o": 1}),
    "names that look the same": ({"\u202eto": 1, "\\u{202e}to": 2}, {"\\u{202e}to": 1, "\\u{202e}to′": 2}),
    "long": ({"text": "x" * 10_000}, {"text": "x" * 10_000}),
}


@pytest.mark.parametrize("case", SHOWN)
def test_shown_arguments(case: str) -> None:
    args, shown = SHOWN[case]

    assert shown_arguments(args, PATHS) == shown
