"""What can be wrong with a request before any operation sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reversi_sdk.errors import Conflict, InvalidInput, NotAllowed


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field; the name is a path such as `answers[0].note`."""

    field: str
    message: str

    def to_json(self) -> dict[str, str]:
        """Return what is answered."""
        return {"field": self.field, "message": self.message}


class FieldsInvalid(InvalidInput):
    """Fields of the body or the query are missing, unknown or of the wrong kind."""

    code = "invalid_fields"

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(
            "; ".join(f"{error.field}: {error.message}" if error.field else error.message for error in errors)
        )
        self.errors = tuple(errors)


class BodyMalformed(InvalidInput):
    """The body is no JSON document, or none that can be taken apart safely."""

    code = "malformed_body"


class BodyTooLarge(InvalidInput):
    """The body is longer than the API takes."""

    code = "body_too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is longer than {limit} bytes")
        self.limit = limit


class BodyIncomplete(InvalidInput):
    """The body ended before it was complete."""

    code = "body_incomplete"

    def __init__(self) -> None:
        super().__init__("the body did not arrive completely")


class CursorInvalid(InvalidInput):
    """The cursor is none that a page of this list carried."""

    code = "invalid_cursor"

    def __init__(self) -> None:
        super().__init__("cursor: take it from `next` or `previous` of a page of this list")


class KeyMalformed(InvalidInput):
    """The header `Idempotency-Key` cannot be one."""

    code = "invalid_idempotency_key"

    def __init__(self) -> None:
        super().__init__("Idempotency-Key: must be 1 to 255 visible ASCII characters")


class KeyReused(InvalidInput):
    """The `Idempotency-Key` came before with another body."""

    code = "idempotency_key_reused"

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key came before with another body: choose a new one")


class KeyInFlight(Conflict):
    """The first request with this `Idempotency-Key` has not been answered yet."""

    code = "idempotency_key_in_flight"

    def __init__(self) -> None:
        super().__init__("the first request with this Idempotency-Key has not been answered yet: repeat it later")


class CredentialsMissing(NotAllowed):
    """The request carries no API key."""

    code = "auth_required"

    def __init__(self) -> None:
        super().__init__("an API key is required: Authorization: Bearer rk_…")
