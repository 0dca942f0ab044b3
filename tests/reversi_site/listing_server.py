"""An MCP server that does nothing but list the tools in a file: `listing_server FILE [PAGE] [MARKER] …`.

FILE holds a JSON list of tools, or null for a server that has no tools at all. PAGE is how many it lists at once.
MARKER is a file that shows that the server was started.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def answer(tools: list[Message] | None, page: int, message: Message) -> Message:
    match message["method"]:
        case "initialize":
            info = {"name": "listing", "version": "1"}
            return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list" if tools is not None:
            start = int((message.get("params") or {}).get("cursor") or 0)
            more = {"nextCursor": str(start + page)} if start + page < len(tools) else {}
            return {"result": {"tools": tools[start : start + page], **more}}
        case method:
            return {"error": {"code": -32601, "message": f"no method {method}"}}


def main(file: str, page: str = "100", marker: str | None = None, *_ignored: str) -> None:
    tools = json.loads(Path(file).read_text(encoding="utf-8"))
    if marker is not None:
        Path(marker).touch()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answered = {"jsonrpc": "2.0", "id": message["id"], **answer(tools, int(page), message)}
            sys.stdout.write(json.dumps(answered) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
