"""Three small services kept in files, built to show what cannot be undone, what gets lost, and what lies.

`mail.send` cannot be taken back. `payments.charge` can be told to lose its answer after the money moved. The undo of
`tickets.open` answers ok and does nothing, as some real services do; only a read-back notices. None is offered in a
catalog: they exist for the demonstration alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.core.connector import Connector, ConnectorSpec
from connectors.core.fields import Field, FieldKind
from connectors.core.outcomes import EffectUncertainError, ToolError
from connectors.core.tool import CallContext, KeyCarrierRow, Tool, UndoRow, VerificationRow
from reversi_sdk.model import Effect

TEXT = FieldKind.STRING
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Desk:
    """The folder in which the services keep their books; one JSON file each."""

    folder: Path

    def book(self, name: str) -> dict[str, Any]:
        """Return the entries of a book by id."""
        path = self.folder / f"{name}.json"
        entries: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return entries

    def write(self, name: str, entries: Mapping[str, Any]) -> None:
        """Replace a book in one step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f".{name}.json"
        draft.write_text(json.dumps(entries, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        draft.rename(self.folder / f"{name}.json")

    def add(self, name: str, prefix: str, entry: Mapping[str, Any]) -> str:
        """Enter something under the next id and return the id."""
        entries = self.book(name)
        entry_id = f"{prefix}_{len(entries) + 1}"
        self.write(name, entries | {entry_id: dict(entry)})
        return entry_id

    def change(self, name: str, entry_id: str, **changes: Any) -> dict[str, Any]:
        """Change an entry and return it; raises ToolError when there is none."""
        entries = self.book(name)
        if entry_id not in entries:
            raise ToolError(f"no entry {entry_id} in {name}")
        entries[entry_id] |= changes
        self.write(name, entries)
        return {"id": entry_id, **entries[entry_id]}


def _send_mail(desk: Desk, args: Mapping[str, Any], context: CallContext) -> Result:
    return {"id": desk.add("outbox", "mail", {"to": args["to"], "subject": args["subject"]})}


def _open_ticket(desk: Desk, args: Mapping[str, Any], context: CallContext) -> Result:
    return {"id": desk.add("tickets", "ticket", {"title": args["title"], "status": "open"})}


def _close_ticket(desk: Desk, args: Mapping[str, Any], context: CallContext) -> Result:
    return {"ok": True}


def _get_ticket(desk: Desk, args: Mapping[str, Any], context: CallContext) -> Result:
    return _entry(desk, "tickets", args["id"])


def _charge(desk: Desk, args: Mapping[str, Any], context: CallContext) -> Result:
    entry_id = desk.add("payments", "ch", {"amount": args["amount"], "refunded": False})
    if args.get("loses_answer", False):
        raise EffectUncertainError("the connection broke before the answer came")
    return {"id": entry_id}


def _refund(desk: Desk, args: Mapping[str, Any], context: CallContext) -> Result:
    return desk.change("payments", args["charge"], refunded=True, refund_key=context.idempotency_key)


def _get_charge(desk: Desk, args: Mapping[str, Any], context: CallContext) -> Result:
    return _entry(desk, "payments", args["id"])


def _entry(desk: Desk, book: str, entry_id: str) -> Result:
    entries = desk.book(book)
    if entry_id not in entries:
        raise ToolError(f"no entry {entry_id} in {book}")
    return {"id": entry_id, **entries[entry_id]}


ID = {"id": Field(TEXT, "Which one.")}
TOOLS = (
    Tool(
        name="mail.send",
        effect=Effect.IRREVERSIBLE,
        permission="mail:send",
        description="Send a mail.",
        inputs={"to": Field(TEXT, "To whom."), "subject": Field(TEXT, "About what.")},
        run=_send_mail,
        summary="mail {{args.to}}: {{args.subject}}",
    ),
    Tool(
        name="tickets.open",
        effect=Effect.REVERSIBLE,
        permission="tickets:write",
        description="Open a ticket.",
        inputs={"title": Field(TEXT, "What it is about.")},
        run=_open_ticket,
        summary="open the ticket {{args.title}}",
        undo=UndoRow(
            tool="tickets.close",
            argument_map={"id": "$result.id"},
            residue=("the closed ticket stays in the list",),
            verification=VerificationRow("tickets.get", {"id": "$result.id"}, {"status": "closed"}),
        ),
        touches=("ticket:{{result.id}}",),
    ),
    Tool(
        name="tickets.close",
        effect=Effect.IDEMPOTENT,
        permission="tickets:write",
        description="Close a ticket. It says that it did, and does nothing.",
        inputs=ID,
        run=_close_ticket,
        summary="close {{args.id}}",
        is_compensation_only=True,
    ),
    Tool(
        name="tickets.get",
        effect=Effect.READ_ONLY,
        permission="tickets:read",
        description="Look at a ticket.",
        inputs=ID,
        run=_get_ticket,
        summary="look at {{args.id}}",
    ),
    Tool(
        name="payments.charge",
        effect=Effect.COMPENSABLE,
        permission="payments:write",
        description="Charge an amount.",
        inputs={
            "amount": Field(FieldKind.INTEGER, "In cents."),
            "loses_answer": Field(FieldKind.BOOLEAN, "Break the connection afterwards.", is_required=False),
        },
        run=_charge,
        summary="charge {{args.amount}} cents",
        undo=UndoRow(
            tool="payments.refund",
            argument_map={"charge": "$result.id"},
            residue=("the charge still appears on the customer's statement",),
            verification=VerificationRow("payments.get", {"id": "$result.id"}, {"refunded": True}),
        ),
    ),
    Tool(
        name="payments.refund",
        effect=Effect.IDEMPOTENT,
        permission="payments:write",
        description="Refund a charge.",
        inputs={"charge": Field(TEXT, "Which charge.")},
        run=_refund,
        summary="refund {{args.charge}}",
        is_compensation_only=True,
        key_carrier=KeyCarrierRow(),
    ),
    Tool(
        name="payments.get",
        effect=Effect.READ_ONLY,
        permission="payments:read",
        description="Look at a charge.",
        inputs=ID,
        run=_get_charge,
        summary="look at {{args.id}}",
    ),
)
CONNECTOR = ConnectorSpec("desk", TOOLS)


def build(folder: Path) -> Connector:
    """Bind the three services to the folder of their books."""
    return CONNECTOR.bind(Desk(folder))
