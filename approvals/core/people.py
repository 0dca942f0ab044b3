"""Who may do what: roles, acts, and the limits of an API key (D11, D33).

A caller is a user, perhaps through one of the user's keys. What a role may do is the table `ALLOWED`; any group that
is no role is a group of approvers. A key may only narrow what its owner may do, and fixes what runs it can open: scope,
modes and, where set, actor, tenant and environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from approvals.core.errors import NotPermitted, WiderThanKey
from approvals.core.gate import grants
from ledger.core.errors import ForeignRun
from ledger.core.statuses import Mode
from ledger.core.values import RunRecord


class Role(StrEnum):
    """The groups that have a meaning of their own; any other group is one of approvers."""

    AGENT = "agent"
    OPERATOR = "operator"
    REVIEWER = "reviewer"
    ADMIN = "admin"
    AUDITOR = "auditor"


class Act(StrEnum):
    """What a caller can want to do. Reading a run includes its steps, events, plan, jobs and report."""

    OPEN_RUN = "open_run"
    CALL = "call"
    READ_OWN_RUN = "read_own_run"
    READ_ANY_RUN = "read_any_run"
    CLOSE_OWN_RUN = "close_own_run"
    CLOSE_ANY_RUN = "close_any_run"
    ROLL_BACK = "roll_back"
    VERIFY = "verify"
    RESOLVE = "resolve"
    RECONCILE_OWN = "reconcile_own"
    COMPENSATE_OWN = "compensate_own"
    COMPENSATE_ANY = "compensate_any"
    READ_APPROVALS = "read_approvals"
    VOTE = "vote"
    ADD_HALT = "add_halt"
    LIFT_HALT = "lift_halt"
    LIST_HALTS = "list_halts"
    MANAGE_KEYS = "manage_keys"
    LIST_KEYS = "list_keys"
    MANAGE_PEOPLE = "manage_people"
    EXPORT = "export"
    SIGN_IN = "sign_in"


ALLOWED: Mapping[Role, frozenset[Act]] = {
    Role.AGENT: frozenset(
        {
            Act.OPEN_RUN,
            Act.CALL,
            Act.READ_OWN_RUN,
            Act.CLOSE_OWN_RUN,
            Act.RECONCILE_OWN,
            Act.COMPENSATE_OWN,
            Act.SIGN_IN,
        }
    ),
    Role.OPERATOR: frozenset(
        {
            Act.READ_ANY_RUN,
            Act.CLOSE_ANY_RUN,
            Act.ROLL_BACK,
            Act.VERIFY,
            Act.RESOLVE,
            Act.COMPENSATE_ANY,
            Act.READ_APPROVALS,
            Act.VOTE,
            Act.ADD_HALT,
            Act.LIST_HALTS,
            Act.SIGN_IN,
        }
    ),
    Role.REVIEWER: frozenset({Act.READ_APPROVALS, Act.VOTE, Act.LIST_HALTS, Act.SIGN_IN}),
    Role.ADMIN: frozenset(Act),
    Role.AUDITOR: frozenset(
        {Act.READ_ANY_RUN, Act.READ_APPROVALS, Act.LIST_HALTS, Act.LIST_KEYS, Act.EXPORT, Act.SIGN_IN}
    ),
}
OF_FREE_GROUPS = frozenset({Act.VOTE, Act.LIST_HALTS, Act.SIGN_IN})
_ROLES = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Limits:
    """What runs a key can open: the widest scope, the modes, and what is fixed for all of them."""

    scope: tuple[str, ...] = ("*",)
    modes: tuple[str, ...] = (Mode.ENFORCE.value,)
    actor: str | None = None
    tenant: str | None = None
    environment: str | None = None

    @property
    def fixed(self) -> Mapping[str, str]:
        """The run's fields that the key decides."""
        named = {"actor": self.actor, "tenant": self.tenant, "environment": self.environment}
        return {name: value for name, value in named.items() if value is not None}


UNLIMITED = Limits(modes=tuple(mode.value for mode in Mode))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `username` is the principal of the runs that it opens; `roles` are its groups as far as they apply."""

    username: str
    roles: frozenset[str]
    limits: Limits | None = None
    key_prefix: str | None = None


def local_admin(name: str) -> Caller:
    """Return the caller at a command line: whoever owns the store's files may do everything with it."""
    return Caller(name, frozenset({Role.ADMIN.value}))


def may(caller: Caller, act: Act) -> bool:
    """Tell whether one of the caller's roles or groups may do this."""
    roles = (Role(name) for name in caller.roles if name in _ROLES)
    is_of_free_group = not caller.roles <= _ROLES
    return any(act in ALLOWED[role] for role in roles) or (is_of_free_group and act in OF_FREE_GROUPS)


def require(caller: Caller, act: Act) -> None:
    """Raise NotPermitted unless the caller may do this."""
    if not may(caller, act):
        raise NotPermitted(caller.username, act.value)


@dataclass(frozen=True, slots=True)
class RunFields:
    """The fields of a run about to be opened, within the limits of whoever opens it."""

    actor: str
    tenant: str
    environment: str
    mode: str
    scope: tuple[str, ...]


def narrow(
    limits: Limits | None,
    *,
    actor: str | None = None,
    tenant: str | None = None,
    environment: str | None = None,
    mode: str | None = None,
    scope: Sequence[str] = (),
) -> RunFields:
    """Return the run's fields: as asked for where the limits allow it, as fixed where nothing was asked for.

    Raises WiderThanKey naming the first field that would be wider than the key.
    """
    bounds = UNLIMITED if limits is None else limits
    asked = {"actor": actor, "tenant": tenant, "environment": environment}
    names = {field: bounds.fixed.get(field, "") if value is None else value for field, value in asked.items()}
    usual = Mode.ENFORCE.value if Mode.ENFORCE.value in bounds.modes else bounds.modes[0]
    fields = RunFields(**names, mode=usual if mode is None else mode, scope=tuple(scope))
    wider = _wider_field(bounds, names, fields.mode, fields.scope)
    if wider is not None:
        raise WiderThanKey(wider)
    return fields


def _wider_field(limits: Limits, names: Mapping[str, str], mode: str, scope: Sequence[str]) -> str | None:
    """Return which field lies outside the limits. A requested glob is covered when one allowed glob contains it."""
    for field, value in limits.fixed.items():
        if names[field] != value:
            return field
    # A word that is no mode at all is refused as such further in, and nobody is told that a key forbids it.
    if mode in list(Mode) and mode not in limits.modes:
        return "mode"
    return None if all(grants(limits.scope, entry) for entry in scope) else "scope"


def may_on_run(caller: Caller, run: RunRecord, *, own: Act | None, others: Act | None) -> bool:
    """Tell whether the caller may do this to the run: `own` when it is the caller's, `others` to anybody's."""
    return _why_not(caller, run, own, others) is None


def require_on_run(caller: Caller, run: RunRecord, *, own: Act | None, others: Act | None) -> None:
    """Raise unless the caller may do this to the run.

    ForeignRun for somebody else's, NotPermitted for the caller's own, WiderThanKey when the run lies outside what the
    caller's key was made for.
    """
    why = _why_not(caller, run, own, others)
    if why is not None:
        raise why


def _why_not(caller: Caller, run: RunRecord, own: Act | None, others: Act | None) -> Exception | None:
    is_own = run.principal == caller.username
    by_own = is_own and own is not None and may(caller, own)
    if not by_own and (others is None or not may(caller, others)):
        wanted = own or others
        return NotPermitted(caller.username, wanted.value if wanted else "act") if is_own else ForeignRun(run.id)
    wider = _outside(caller.limits, run, is_calling=by_own)
    return None if wider is None else WiderThanKey(wider)


def _outside(limits: Limits | None, run: RunRecord, *, is_calling: bool) -> str | None:
    # Scope and mode bound what an agent does in its run; whoever looks after the runs of others brings no calls.
    if limits is None:
        return None
    names = {"actor": run.actor, "tenant": run.tenant, "environment": run.environment}
    bounds = limits if is_calling else Limits(("*",), UNLIMITED.modes, limits.actor, limits.tenant, limits.environment)
    return _wider_field(bounds, names, run.mode.value, run.scope)
