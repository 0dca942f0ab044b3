"""Lists that the server gives page by page."""

from __future__ import annotations

from reversi_sdk.client import routes
from reversi_sdk.client.delivery import Delivery
from reversi_sdk.client.effects import Flow
from reversi_sdk.client.errors import AnswerNotUnderstood
from reversi_sdk.client.wire import Document, Request


def all_pages(delivery: Delivery, request: Request, most: int | None = None) -> Flow[list[Document]]:
    """Return what all pages list, or the first `most` of it."""
    found: list[Document] = []
    seen = {request.params}
    while True:
        page = yield from delivery.documented(request)
        found += page.get("results") or []
        following = page.get("next")
        if not following or (most is not None and len(found) >= most):
            return found[:most]
        request = routes.following(request, str(following))
        if request.params in seen:
            raise AnswerNotUnderstood("the server's pages lead in a circle")
        seen.add(request.params)
