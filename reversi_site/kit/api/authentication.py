"""Who calls: an API key in `Authorization: Bearer …`, and nothing else; a console's session opens no API."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.request import Request

from reversi_site.kit.api.errors import CredentialsMissing
from reversi_site.kit.clock import SystemClock

SCHEME = "bearer"


class HasName(Protocol):
    """Whoever calls, as far as these bases need to know."""

    @property
    def username(self) -> str:
        """The caller's name: what it may repeat a request under."""


class Authenticate(Protocol):
    """What `settings.API_AUTHENTICATE` names."""

    def __call__(self, *, token: str, now: datetime) -> HasName:
        """Return the caller of a key; raises what the error table answers 401 for."""


class Principal:
    """A caller where REST framework expects a user."""

    is_authenticated = True
    is_active = True

    def __init__(self, caller: HasName) -> None:
        self.caller = caller

    def __str__(self) -> str:
        return self.caller.username


class BearerAuthentication(BaseAuthentication):
    """Looks the key up through the function that the settings name."""

    def authenticate(self, request: Request) -> tuple[Any, Any]:
        """Return the caller; raises CredentialsMissing, and what the key itself is refused for."""
        authenticate = cast(Authenticate, import_string(settings.API_AUTHENTICATE))
        caller = authenticate(token=bearer_token(request), now=SystemClock().now())
        return Principal(caller), None

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge."""
        return CHALLENGE


CHALLENGE = 'Bearer realm="reversi"'


def bearer_token(request: Request) -> str:
    """Return the token of the header; raises CredentialsMissing when there is none that could be one."""
    parts = get_authorization_header(request).split()
    if len(parts) != 2 or parts[0].lower() != SCHEME.encode():
        raise CredentialsMissing
    try:
        token = parts[1].decode("ascii")
    except UnicodeDecodeError as error:
        raise CredentialsMissing from error
    if not token.isprintable():
        raise CredentialsMissing
    return token
