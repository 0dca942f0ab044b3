"""The worker: the queue's cluster and the ticker, until a signal.

The main process starts the cluster and then ticks. A signal only sets a flag; the cluster is stopped from the loop,
never from the handler, which might have interrupted a transaction that the cluster's processes wait for.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from django.db import connections

from reversi_sdk.errors import Unavailable
from reversi_site.process_group import detach_children
from reversi_site.ticker import run_ticker

logger = logging.getLogger(__name__)


class ClusterDied(Unavailable):
    """The queue's guard process ended by itself."""

    code = "cluster_died"

    def __init__(self) -> None:
        super().__init__("the worker's guard process died; start the worker again")


def run_worker(*, announce: Callable[[str], object]) -> None:
    """Run queued rollbacks and scheduled jobs until SIGTERM or SIGINT; jobs under way are finished first.

    Raises ClusterDied when the cluster ended without being told to.
    """
    from django_q.cluster import Cluster

    stop = threading.Event()
    # A connection that a forked child inherits and closes is closed for its parent too.
    connections.close_all()
    detach_children()
    cluster = Cluster()
    _stop_on_signals(stop)
    cluster.start()
    announce("worker: ready")
    try:
        run_ticker(wait=lambda seconds: stop.wait(seconds) or not cluster.sentinel.is_alive())
        if not stop.is_set():
            raise ClusterDied
    finally:
        announce("worker: stopping, jobs under way are finished first")
        connections.close_all()
        cluster.stop()
    announce("worker: stopped")


def _stop_on_signals(stop: threading.Event) -> None:
    """Replace the cluster's own handlers, which stop it from inside the handler."""

    def handle(number: int, frame: FrameType | None) -> Any:
        stop.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
