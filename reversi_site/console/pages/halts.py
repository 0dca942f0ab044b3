"""Halts: what is stopped, by whom and why; stopping more, and letting calls pass again."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpResponse

from approvals.core.people import Act
from approvals.operations.halts import add_halt, lift_halt
from approvals.queries import list_halts
from reversi_site.console.forms import HaltForm
from reversi_site.console.refusals import refusal_of
from reversi_site.console.visit import Visit, page

LIFTED_SHOWN = 50


@page(Act.LIST_HALTS)
def halt_list(visit: Visit) -> HttpResponse:
    """List what is halted, and what was."""
    return _show(visit, HaltForm())


def _show(
    visit: Visit, form: HaltForm, *, refused: str | None = None, status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    halts = list_halts(active_only=False)
    return visit.show(
        "halts",
        title="Halts",
        status=status,
        standing=[halt for halt in halts if halt.lifted_at is None],
        lifted=[halt for halt in reversed(halts) if halt.lifted_at is not None][:LIFTED_SHOWN],
        can_add=visit.may(Act.ADD_HALT),
        can_lift=visit.may(Act.LIFT_HALT),
        form=form,
        refused=refused,
    )


@page(Act.ADD_HALT)
def halt_add(visit: Visit) -> HttpResponse:
    """Stop new calls, and say how many that match are in flight."""
    form = HaltForm(visit.sent)
    if not form.is_valid():
        return _show(visit, form, status=HTTPStatus.BAD_REQUEST)
    in_flight: list[int] = []

    def add() -> None:
        reason, actor = form.cleaned_data["reason"], visit.caller.username
        in_flight.append(add_halt(reason=reason, scope=form.scope(), actor=actor, now=visit.now)[1])

    refused = refusal_of(add)
    if refused is not None:
        return _show(visit, form, refused=refused, status=HTTPStatus.CONFLICT)
    count = in_flight[0]
    calls = "1 matching call is" if count == 1 else f"{count} matching calls are"
    return visit.done(f"New calls that match are stopped. {calls} in flight.", "halts")


@page(Act.LIFT_HALT)
def halt_lift(visit: Visit, halt_id: str) -> HttpResponse:
    """Lift one halt."""
    return _lifted(visit, lift_halt(id=halt_id, actor=visit.caller.username, now=visit.now))


@page(Act.LIFT_HALT)
def halt_lift_all(visit: Visit) -> HttpResponse:
    """Lift every halt that stands."""
    return _lifted(visit, lift_halt(id=None, actor=visit.caller.username, now=visit.now))


def _lifted(visit: Visit, count: int) -> HttpResponse:
    if not count:
        return visit.refused("It was lifted before.", "halts")
    return visit.done("The halt is lifted." if count == 1 else f"{count} halts are lifted.", "halts")
