"""Driving flows by the calling thread, with requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import requests

from reversi_sdk.client.addresses import Address
from reversi_sdk.client.effects import Effect, Flow, Invoke, NoAnswer, Pause, Send
from reversi_sdk.client.wire import Answer, Request

T = TypeVar("T")
CHUNK = 65_536


def drive(flow: Flow[T], perform: Callable[[Effect], Any]) -> T:
    """Run a flow to its end: what an effect brings is handed back, what it raises is raised inside the flow."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            effect = flow.send(value) if error is None else flow.throw(error)
        except StopIteration as stop:
            result: T = stop.value
            return result
        value, error = None, None
        try:
            value = perform(effect)
        except BaseException as raised:  # noqa: BLE001  # the flow decides, and raises it on
            error = raised


class Threads:
    """Performs effects in the calling thread; each thread has a connection of its own."""

    def __init__(self, address: Address, *, timeout: float, trusts_environment: bool = True) -> None:
        self._address, self._timeout, self._trusts_environment = address, timeout, trusts_environment
        self._local = threading.local()
        self._sessions: list[requests.Session] = []

    def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end."""
        return drive(flow, self._perform)

    def close(self) -> None:
        """Close the connections of all threads."""
        while self._sessions:
            self._sessions.pop().close()
        self._local = threading.local()

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Send():
                return self._send(effect.request)
            case Pause():
                return time.sleep(effect.ms / 1000)
            case Invoke():
                return effect.call()

    def _send(self, request: Request) -> Answer:
        limit = self._timeout + request.extra_wait_ms / 1000
        ends_at = time.monotonic() + limit
        try:
            with self._session().request(
                request.method,
                self._address.url_of(request.path),
                params=list(request.params),
                data=request.content,
                headers={**request.headers, **self._address.headers},
                timeout=(min(self._timeout, 10.0), limit),
                allow_redirects=False,
                stream=True,
            ) as response:
                content = _whole(response, ends_at)
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Answer(response.status_code, headers, content)
        except requests.RequestException as error:
            raise NoAnswer(_words(error)) from error

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            session.trust_env = self._trusts_environment
            # Named, so that a .netrc of the user's cannot put another password in its place.
            session.auth = _Bearer(self._address)
            self._local.session = session
            self._sessions.append(session)
        return session


class _Bearer(requests.auth.AuthBase):
    def __init__(self, address: Address) -> None:
        self._address = address

    def __call__(self, prepared: requests.PreparedRequest) -> requests.PreparedRequest:
        prepared.headers.update(self._address.headers)
        return prepared


def _whole(response: requests.Response, ends_at: float) -> bytes:
    """Read the body; a server that drips it forever is as good as silent."""
    parts = []
    for part in response.iter_content(CHUNK):
        parts.append(part)
        if time.monotonic() > ends_at:
            raise requests.exceptions.ReadTimeout("the answer did not end in time")
    return b"".join(parts)


def _words(error: requests.RequestException) -> str:
    # The library's own texts quote the whole address and objects of its own.
    return type(error).__name__
