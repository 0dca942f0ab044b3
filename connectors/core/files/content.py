"""Content as it stands in arguments and results: text where it is UTF-8, base64 where it is not."""

from __future__ import annotations

import base64
import binascii

from connectors.core.outcomes import ToolError

WRITE_LIMIT_BYTES = 10 * 1024 * 1024
UTF_8 = "utf-8"
BASE64 = "base64"


def as_text(content: bytes) -> tuple[str, str]:
    """Return content as text and the encoding that leads back to its bytes."""
    try:
        return content.decode(UTF_8), UTF_8
    except UnicodeDecodeError:
        return base64.b64encode(content).decode(), BASE64


def decoded(content: str, encoding: str) -> bytes:
    """Return the bytes that an argument stands for, up to the limit."""
    try:
        data = base64.b64decode(content, validate=True) if encoding == BASE64 else content.encode(UTF_8)
    except binascii.Error:
        raise ToolError("argument content is not base64") from None
    except ValueError:
        raise ToolError(f"argument content cannot be written as {encoding}") from None
    if len(data) > WRITE_LIMIT_BYTES:
        raise ToolError(f"argument content is larger than the {WRITE_LIMIT_BYTES} bytes that are written at once")
    return data
