"""What people type into the console, read strictly; what an operation refuses beyond that is said beside the form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString

from approvals.core.halts import HaltScope
from approvals.core.people import Role
from approvals.core.requests import Decision
from ledger.core.statuses import Mode
from reversi_sdk.documents import DocumentInvalid
from reversi_sdk.references import MISSING
from reversi_sdk.strict_json import load_json
from reversi_site.console.settling import Settling

NAME = 200
REASON = 500
NOTE = 2000
RESULT = 200_000
DIGEST = 64
LINES = 4000


class ConsoleForm(forms.Form):
    """A form whose labels stand alone, without a colon behind them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        self.use_required_attribute = True


class RollbackForm(ConsoleForm):
    """What an operator decides when starting a rollback; the digest names the plan that was looked at."""

    digest = forms.RegexField(r"\A[0-9a-f]{64}\Z", max_length=DIGEST, widget=forms.HiddenInput)
    attempts = forms.IntegerField(
        label="Attempts for each undo",
        min_value=1,
        max_value=10,
        initial=1,
        help_text="A failed undo is tried again so often, with the same key and growing pauses.",
    )
    approves = forms.BooleanField(
        label="Approve the undos that need an approval, all in one go",
        required=False,
        help_text="Without it they are left alone and reported as awaiting approval.",
    )
    overwrites = forms.BooleanField(
        label="Overwrite newer work",
        required=False,
        help_text="Without it a thing that somebody changed after the run is left as it is and reported as failed.",
    )
    closes = forms.BooleanField(
        label="Close the run afterwards", required=False, help_text="A closed run takes no more calls."
    )
    is_read = forms.BooleanField(
        label="I have read what is overwritten and what stays behind",
        error_messages={"required": "Say that you have read what this does."},
    )


def _explained(way: Settling) -> SafeString:
    return format_html('<span><strong>{}</strong><br><span class="help">{}</span></span>', way.label, way.help)


class ResolveForm(ConsoleForm):
    """How a person settles a step; the note is kept for good."""

    status = forms.ChoiceField(label="What did you find?", widget=forms.RadioSelect)
    result = forms.CharField(
        label="Result of the call, as JSON",
        required=False,
        max_length=RESULT,
        widget=forms.Textarea(attrs={"rows": 4, "class": "code", "spellcheck": "false"}),
        help_text='Only where the call took effect, for example {"id": "ch_o50"}. The undo takes its values from it.',
    )
    note = forms.CharField(
        label="Note",
        max_length=NOTE,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What you found, and where you looked. It is kept in the journal under your name.",
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, ways: Sequence[Settling]) -> None:
        super().__init__(data)
        self.ways = ways
        self.fields["status"] = forms.ChoiceField(
            label="What did you find?",
            widget=forms.RadioSelect,
            choices=[(way.status.value, _explained(way)) for way in ways],
        )
        if not any(way.takes_result for way in ways):
            del self.fields["result"]

    def clean_result(self) -> Any:
        """Return the value, or MISSING when none was given: `null` is a value."""
        text = self.cleaned_data["result"].strip()
        if not text:
            return MISSING
        try:
            return load_json(text.encode(), name="result").value
        except DocumentInvalid as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        """Refuse a result beside a status that has none."""
        cleaned = dict(super().clean() or self.cleaned_data)
        takes = {way.status.value for way in self.ways if way.takes_result}
        result = cleaned.setdefault("result", MISSING)
        if result is not MISSING and "status" in cleaned and cleaned["status"] not in takes:
            self.add_error("result", "A result belongs to a call that took effect.")
        return cleaned


class VoteForm(ConsoleForm):
    """A vote on a request for approval."""

    decision = forms.ChoiceField(choices=[(decision.value, decision.value) for decision in Decision])
    reason = forms.CharField(
        label="Reason",
        required=False,
        max_length=NOTE,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Needed to deny: whoever asked reads it.",
    )

    def clean(self) -> dict[str, Any]:
        """Refuse a denial that says nothing."""
        cleaned = dict(super().clean() or self.cleaned_data)
        if cleaned.get("decision") == Decision.DENY and not cleaned.get("reason", "").strip():
            self.add_error("reason", "Say why: whoever asked reads it.")
        return cleaned


class HaltForm(ConsoleForm):
    """A halt: why, and of what."""

    reason = forms.CharField(label="Why", max_length=REASON, help_text="Whoever is blocked reads it.")
    tool = forms.CharField(label="Tool", required=False, max_length=NAME)
    actor = forms.CharField(label="Actor", required=False, max_length=NAME)
    tenant = forms.CharField(label="Tenant", required=False, max_length=NAME)
    environment = forms.CharField(label="Environment", required=False, max_length=NAME)
    principal = forms.CharField(label="Principal", required=False, max_length=NAME)
    run = forms.CharField(label="Run", required=False, max_length=NAME)

    def scope(self) -> HaltScope:
        """Return what the halt is narrowed to."""
        named = ("tool", "actor", "tenant", "environment", "principal", "run")
        return HaltScope(**{name: self.cleaned_data[name].strip() or None for name in named})


def _offer(field: forms.Field, names: Iterable[str]) -> None:
    assert isinstance(field, forms.ChoiceField)
    field.choices = [(name, name) for name in names]


class KeyForm(ConsoleForm):
    """An API key: whose, and how far it reaches."""

    owner = forms.ChoiceField(label="Owner", help_text="Runs opened with the key are this person's.")
    label = forms.CharField(label="Label", required=False, max_length=NAME, help_text="What it is for.")
    roles = forms.MultipleChoiceField(
        label="Roles",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Leave all empty for whatever the owner may do. A key never has more than its owner.",
    )
    scope = forms.CharField(
        label="Widest scope",
        required=False,
        max_length=LINES,
        initial="*",
        widget=forms.Textarea(attrs={"rows": 2, "class": "code", "spellcheck": "false"}),
        help_text="Permissions that runs of this key may ask for, one a line, for example payments:*",
    )
    modes = forms.MultipleChoiceField(
        label="Modes",
        choices=[(mode.value, mode.value) for mode in Mode],
        initial=[Mode.ENFORCE.value],
        widget=forms.CheckboxSelectMultiple,
        help_text="In observe mode violations are recorded and not blocked.",
    )
    actor = forms.CharField(label="Fixed actor", required=False, max_length=NAME)
    tenant = forms.CharField(label="Fixed tenant", required=False, max_length=NAME)
    environment = forms.CharField(label="Fixed environment", required=False, max_length=NAME)
    expires_on = forms.DateField(
        label="Expires on",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="The last day on which it works, by UTC. Empty: until it is revoked.",
    )

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, owners: Iterable[str], groups: Iterable[str], **kwargs: Any
    ) -> None:
        super().__init__(data, **kwargs)
        for field, names in (("owner", owners), ("roles", groups)):
            _offer(self.fields[field], names)

    def clean_scope(self) -> tuple[str, ...]:
        """Return the permissions; none typed is any."""
        lines = (line.strip() for line in self.cleaned_data["scope"].splitlines())
        return tuple(line for line in lines if line) or ("*",)

    def expires_at(self) -> datetime | None:
        """Return when the key stops working: after the last day."""
        day = self.cleaned_data["expires_on"]
        return None if day is None else datetime.combine(day, time.min, UTC) + timedelta(days=1)


_PASSWORD = forms.PasswordInput(attrs={"autocomplete": "new-password"})


class PersonRolesForm(ConsoleForm):
    """What a person belongs to."""

    roles = forms.MultipleChoiceField(
        label="Roles",
        required=False,
        choices=[(role.value, role.value) for role in Role],
        widget=forms.CheckboxSelectMultiple,
    )
    groups = forms.CharField(
        label="Groups of approvers",
        required=False,
        max_length=LINES,
        help_text="Names such as finance, separated by spaces. A manifest may ask for their approval.",
    )

    def all_roles(self) -> tuple[str, ...]:
        """Return the roles and the groups."""
        return (*self.cleaned_data["roles"], *self.cleaned_data["groups"].replace(",", " ").split())


class PersonForm(PersonRolesForm):
    """A new person."""

    username = forms.CharField(label="Name", max_length=150, help_text="Letters, digits and _ . @ + -")
    password = forms.CharField(
        label="Password",
        required=False,
        widget=_PASSWORD,
        help_text="Only for people who sign in here; an agent needs none.",
    )
    field_order = ("username", "roles", "groups", "password")


class PersonPasswordForm(ConsoleForm):
    """A new password for a person."""

    password = forms.CharField(label="New password", widget=_PASSWORD)
