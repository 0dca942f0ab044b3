"""A server that keeps to its revision of the protocol; the scripts beside it give it a wire.

Before 2026-07-28 it wants the handshake, since then an envelope in every request. Each message that it received is
kept, so that a test sees what came after the answer was given up.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Message = dict[str, Any]

MODERN = "2026-07-28"
UNKNOWN_METHOD, INVALID_PARAMS = -32601, -32602
VERSION_META = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_META = "io.modelcontextprotocol/subscriptionId"
CAPABILITIES = {"tools": {"listChanged": True}}
MIRRORED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


Say = Callable[[Message], object]


@dataclass(frozen=True, slots=True)
class Memory:
    """What outlives a request: over HTTP each has a server of its own."""

    received: list[Message] = field(default_factory=list)
    listeners: list[tuple[Say, Message]] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)


class PlainServer:
    """Answers messages through `say`, from any thread."""

    def __init__(
        self,
        *,
        revision: str,
        say: Say,
        tools: Sequence[str] = (),
        page: int = 0,
        oddity: str = "",
        memory: Memory | None = None,
    ) -> None:
        self.revision, self.say, self.page, self.oddity = revision, say, page, oddity
        self.memory = memory or Memory()
        self.tools: dict[str, Callable[[Message], None]] = {
            "echo": self._echo,
            "answer": lambda request: self.result(request, request["params"]["arguments"]["result"]),
            "error": self._error,
            "later": self._later,
            "never": lambda _: None,
            "progress": self._progress,
            "die": lambda _: os._exit(3),
            "grow": self._grow,
            "received": self._received,
            **dict.fromkeys([*tools, *self.memory.tools], self._nothing),
        }

    @property
    def is_modern(self) -> bool:
        return self.revision == MODERN

    def take(self, message: Message) -> None:
        """Take one message; a call is answered by a thread of its own."""
        self.memory.received.append(message)
        if "id" not in message or "method" not in message:
            return
        if self.is_modern and _meta(message).get(VERSION_META) != MODERN:
            self.error(message, INVALID_PARAMS, "the envelope is missing")
        elif message["method"] == "tools/call":
            threading.Thread(target=self._call, args=(message,), daemon=True).start()
        else:
            self._answer(message)

    def result(self, request: Message, result: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def error(self, request: Message, code: int, message: str, data: Any = None) -> None:
        said = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.say({"jsonrpc": "2.0", "id": request["id"], "error": said})

    def text(self, text: str, **more: Any) -> Message:
        complete = {"resultType": "complete"} if self.is_modern else {}
        return {"content": [{"type": "text", "text": text}], **more, **complete}

    def _answer(self, request: Message) -> None:
        modern, older = self.is_modern, not self.is_modern
        match request["method"]:
            case "initialize" if older:
                info = {"name": "plain", "version": "1"}
                chosen = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "serverInfo": info}
                self.result(request, chosen)
            case "server/discover" if modern:
                self.result(request, self._cached({"supportedVersions": [MODERN], "capabilities": CAPABILITIES}))
            case "tools/list":
                self.result(request, self._listed(request.get("params") or {}))
            case "subscriptions/listen" if modern:
                self._listen(request)
            case "ping" if older:
                self.result(request, {})
            case method:
                self.error(request, UNKNOWN_METHOD, f"no method {method}")

    def _cached(self, result: Message) -> Message:
        if not self.is_modern:
            return result
        return {**result, "ttlMs": 3_600_000, "cacheScope": "private", "resultType": "complete"}

    def _listed(self, params: Mapping[str, Any]) -> Message:
        names, start = list(self.tools), int(params.get("cursor", 0))
        end = start + self.page if self.page else len(names)
        tools = [
            {"name": name, "x-own": [name], "inputSchema": MIRRORED if name == "echo" else {"type": "object"}}
            for name in names[start:end]
        ]
        if self.oddity == "twice":
            tools = [*tools, *tools]
        elif self.oddity == "marked":
            tools[0]["inputSchema"] = {**MIRRORED, "properties": {"list": {"type": "array", "x-mcp-header": "List"}}}
        is_more = end < len(names) or self.oddity == "endless"
        return self._cached({"tools": tools, **({"nextCursor": str(end)} if is_more else {})})

    def _listen(self, request: Message) -> None:
        subscription = {"_meta": {SUBSCRIPTION_META: request["id"]}}
        self.memory.listeners.append((self.say, subscription))
        params = {**subscription, "notifications": request["params"]["notifications"]}
        self.say({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})

    def _call(self, request: Message) -> None:
        name = request["params"]["name"]
        if name in self.tools:
            self.tools[name](request)
        else:
            self.error(request, INVALID_PARAMS, f"no tool {name}")

    def _nothing(self, request: Message) -> None:
        self.result(request, self.text(request["params"]["name"]))

    def _echo(self, request: Message) -> None:
        """Answer the arguments, and the `_meta` that came with them."""
        arguments = request["params"].get("arguments") or {}
        self.result(request, self.text("echoed", structuredContent=arguments, _meta={"seen": _meta(request)}))

    def _error(self, request: Message) -> None:
        said = request["params"]["arguments"]
        self.error(request, said["code"], said.get("message", ""), said.get("data"))

    def _later(self, request: Message) -> None:
        said = request["params"]["arguments"]
        time.sleep(said["ms"] / 1000)
        self.result(request, self.text(said["word"]))

    def _progress(self, request: Message) -> None:
        for done in (1, 2, 3):
            params = {"progressToken": _meta(request)["progressToken"], "progress": done, "total": 3}
            self.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        self.result(request, self.text("done"))

    def _grow(self, request: Message) -> None:
        """Offer one tool more, and say so: since 2026-07-28 only to whom listens."""
        name = f"more_{len(self.memory.tools)}"
        self.memory.tools.append(name)
        self.tools[name] = self._nothing
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        if not self.is_modern:
            self.say(changed)
        for say, subscription in self.memory.listeners:
            say({**changed, "params": subscription})
        self.result(request, self.text("grown"))

    def _received(self, request: Message) -> None:
        said = {"messages": list(self.memory.received), "pid": os.getpid(), "environment": dict(os.environ)}
        self.result(request, self.text("all of it", structuredContent={**said, "cwd": str(Path.cwd())}))


def _meta(message: Message) -> Message:
    meta: Message = (message.get("params") or {}).get("_meta") or {}
    return meta
