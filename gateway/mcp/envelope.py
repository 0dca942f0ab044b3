"""What a request carries besides its own parameters, by the revision that the upstream speaks.

Since 2026-07-28 each request says in `_meta` which revision it follows and who asks with which capabilities, and over
HTTP repeats in headers the method, the name and the arguments that the tool's schema marks; before, the handshake has
said it, and a header names the revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.dispatcher import CallOptions
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
)
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

# Which arguments of a tool are repeated in headers: the way to each, and the header's name.
Mirrored = Mapping[tuple[str, ...], str]


def is_modern(version: str) -> bool:
    """Tell whether the revision knows no handshake."""
    return version in MODERN_PROTOCOL_VERSIONS


def enveloped(
    method: str,
    params: Mapping[str, Any],
    *,
    version: str,
    client: Mapping[str, Any],
    mirrored: Mirrored | None = None,
) -> tuple[dict[str, Any], CallOptions]:
    """Return the parameters to send and the options of their sending."""
    headers = {MCP_PROTOCOL_VERSION_HEADER: version}
    if not is_modern(version):
        return dict(params), {"headers": headers}
    meta = {
        **(params.get("_meta") or {}),
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: dict(client),
        CLIENT_CAPABILITIES_META_KEY: {},
    }
    headers[MCP_METHOD_HEADER] = method
    name = params.get(NAME_BEARING_METHODS.get(method, ""))
    if isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    headers |= mcp_param_headers(mirrored or {}, params.get("arguments") or {})
    return {**params, "_meta": meta}, {"headers": headers}
