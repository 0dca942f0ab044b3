"""What the result of a `tools/call` says: the value that `$result` reads (D15), and the text of an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

NO_WORDS = "the tool reported an error without words"


def value_of(answer: Mapping[str, Any]) -> Any:
    """Return the structured content, else the single text as JSON, else that text under `text`.

    Several contents without structured ones are the list of contents under `content`.
    """
    if answer.get("structuredContent") is not None:
        return answer["structuredContent"]
    content = answer.get("content")
    texts = _texts(content)
    if isinstance(content, list) and len(content) == 1 and len(texts) == 1:
        return _parsed(texts[0])
    return {"content": content if isinstance(content, list) else []}


def error_text_of(answer: Mapping[str, Any]) -> str:
    """Return what an error result says, in one text."""
    text = "\n".join(_texts(answer.get("content"))).strip()
    structured = answer.get("structuredContent")
    if text or structured is None:
        return text or NO_WORDS
    return json.dumps(structured, ensure_ascii=False)


def _texts(content: Any) -> list[str]:
    items = content if isinstance(content, list) else []
    blocks = [item for item in items if isinstance(item, dict) and item.get("type") == "text"]
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"text": text}
