"""A server whose books are only in its own process: another process of it knows nothing of them."""

import json
import sys
from typing import Any

BOOK = {"type": "object", "properties": {"book": {"type": "string"}}, "required": ["book"]}
TOOLS = [
    {"name": name, "inputSchema": BOOK if name != "list" else {"type": "object"}} for name in ("add", "remove", "list")
]
REVISION = "2025-06-18"
UNKNOWN_METHOD = -32601


def answered(books: list[str], method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "shelf", "version": "1"}
            return {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return called(books, params["name"], params.get("arguments", {}))
        case _:
            return {}


def called(books: list[str], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if tool == "add":
        books.append(arguments["book"])
    elif tool == "remove" and arguments["book"] in books:
        books.remove(arguments["book"])
    value = {"books": list(books)}
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def main() -> None:
    books: list[str] = []
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "server/discover":
            answer["error"] = {"code": UNKNOWN_METHOD, "message": "unknown"}
        else:
            answer["result"] = answered(books, message["method"], message.get("params", {}))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
