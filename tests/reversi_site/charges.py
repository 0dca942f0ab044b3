"""A run with charges, as the worked examples have it; and the commands that undo and read them."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.operations.calls import call
from ledger.operations.runs import open_run
from manifests_registry.core.snapshot import Snapshot
from manifests_registry.sources import read_snapshot
from reversi_sdk.errors import EffectUncertainError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PRINCIPAL = "local:tester"
MANIFESTS = """
- tool: stripe.get_charge
  effect: read_only
  permission: payments:read
- tool: stripe.create_charge
  effect: compensable
  permission: payments:write
  compensation:
    tool: stripe.refund
    residue: [the charge still appears on the customer's statement]
    argument_map: { charge_id: $result.id, amount: $args.amount }
    verification:
      tool: stripe.get_charge
      arguments: { charge_id: $result.id }
      expect: { refunded: true }
      retries: 2
      backoff_ms: 1
- tool: stripe.refund
  effect: idempotent
  permission: payments:write
- tool: mail.send
  effect: irreversible
  permission: mail:send
"""


@dataclass(frozen=True, slots=True)
class Charges:
    """A run in which charges are made."""

    run_id: str
    snapshot: Snapshot

    def charge(self, *, amount: int, charge_id: str) -> None:
        self._call("stripe.create_charge", {"amount": amount}, lambda args, key: {"id": charge_id})

    def lose(self, *, amount: int) -> None:
        """Make a charge whose answer gets lost."""

        def execute(args: Mapping[str, Any], key: str | None) -> Any:
            raise EffectUncertainError("no answer")

        try:
            self._call("stripe.create_charge", {"amount": amount}, execute)
        except EffectUncertainError:
            return
        raise AssertionError("the call did not raise")

    def mail(self) -> None:
        self._call("mail.send", {}, lambda args, key: {})

    def _call(self, tool: str, args: Mapping[str, Any], execute: Any) -> None:
        call(self.run_id, tool, args, execute=execute, principal=PRINCIPAL, snapshot=self.snapshot)


def open_charges(folder: Path, *, run_id: str, mode: str = "enforce") -> Charges:
    path = folder / "manifests.yaml"
    path.write_text(MANIFESTS)
    open_run(principal=PRINCIPAL, now=NOW, run_id=run_id, mode=mode, scope=("*",))
    return Charges(run_id, read_snapshot([path]))


def command(folder: Path, name: str, script: str) -> str:
    """Write an executable shell script and return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
