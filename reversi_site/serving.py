"""The web server: a listening socket that is surely ours, and gunicorn's threads behind it.

The socket is made before anything else, so a port that is taken is a message and not a server that tries and tries.
Nothing is loaded before the fork: a database connection or a pool that two processes share answers the wrong one.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import Any

from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]  # it has none

from reversi_sdk.errors import InvalidInput, Unavailable
from reversi_site.process_group import dying_with_parent

THREADS = 16
BACKLOG = 512
GRACE_SECONDS = 10
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class PortInUse(Unavailable):
    """Something else listens there."""

    code = "port_in_use"

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"port {port} of {host} is in use: choose another port, or stop what listens there")


class CannotListen(Unavailable):
    """The address cannot be listened on."""

    code = "cannot_listen"


class DebugRefused(InvalidInput):
    """Debugging is on, which shows secrets to whoever asks."""

    code = "debug_refused"

    def __init__(self) -> None:
        super().__init__("DEBUG is on: this server does not run with it")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address; raises PortInUse or CannotListen."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(host, port) from error
        raise CannotListen(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    return listening


def reach_of(listening: socket.socket) -> str | None:
    """Return what has to be said about who can reach the socket: nothing when that is this machine alone."""
    from django.conf import settings

    host = listening.getsockname()[0]
    if ipaddress.ip_address(host).is_loopback or len(settings.ALLOWED_HOSTS) > len(LOCAL_NAMES):
        return None
    return "other machines are answered 400 until REVERSI_ALLOWED_HOSTS has the name by which they call this one"


def address_of(listening: socket.socket) -> str:
    """Return the address that a browser on this machine reaches the socket at."""
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


def serve(listening: socket.socket, *, workers: int) -> None:
    """Serve until SIGTERM or SIGINT, and then end the process; requests under way get some seconds."""
    from django.conf import settings

    if settings.DEBUG:
        raise DebugRefused
    _Server(listening.detach(), workers).run()


class _Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn, configured here and nowhere else: no file and no variable of the environment is read."""

    def __init__(self, descriptor: int, workers: int) -> None:
        self._descriptor, self._workers = descriptor, workers
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._settings().items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        from reversi_site.wsgi import application

        return application

    def _settings(self) -> dict[str, Any]:
        tie = dying_with_parent()
        return {
            "bind": f"fd://{self._descriptor}",
            "workers": self._workers,
            "worker_class": "reversi_site.patient_worker.PatientWorker",
            "threads": THREADS,
            "preload_app": False,
            "graceful_timeout": GRACE_SECONDS,
            "control_socket_disable": True,
            "loglevel": "warning",
            "proc_name": "reversi-server",
            "post_fork": lambda arbiter, worker: tie(),
        }
