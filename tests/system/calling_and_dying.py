"""An agent killed in the middle of its call: `python -m tests.system.calling_and_dying RUN before|after`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import django


def main(run_id: str, moment: str) -> None:
    django.setup()
    from gateway.operations.calls import call
    from tests.system.agents import PRINCIPAL, snapshot_of
    from tests.system.killing import FOLDER
    from tests.system.shop import Shop, manifests

    shop = Shop(Path(os.environ[FOLDER]))

    def execute(arguments: dict[str, Any], key: str | None) -> None:
        if moment == "after":
            shop.order(arguments["order"])
        os.kill(os.getpid(), signal.SIGKILL)

    snapshot = snapshot_of(manifests(is_keyed=True))
    call(run_id, "shop.order", {"order": run_id}, execute=execute, principal=PRINCIPAL, snapshot=snapshot)


if __name__ == "__main__":
    main(*sys.argv[1:])
