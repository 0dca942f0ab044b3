"""What a body may be: strict JSON of bounded size with known fields, or a 400 that names what is wrong."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from reversi_site.body_limit import BodyLimit
from reversi_site.kit.api.documents import BODY_LIMIT
from tests.api.world import World, open_run

STANDARD = {"type", "title", "status", "detail", "code"}


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"{", "line 1"),
        (b"{'a': 1}", "line 1"),
        (b'{"scope": [],}', "line 1"),
        (b'{"scope": []} {}', "line 1"),
        (b"\xff\xfe", "UTF-8"),
        (b'\xef\xbb\xbf{"scope": []}', "JSON"),
        (b'{"scope": [], "scope": ["*"]}', "twice"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_bodies_that_are_no_json_are_refused(world: World, content: bytes, detail: str) -> None:
    answer = world.agent.send("POST", "runs", content=content)

    assert (answer.status, answer.data["code"]) == (400, "malformed_body")
    assert detail in answer.data["detail"]
    assert answer.data.keys() >= STANDARD
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("content", [b"[]", b"null", b"1", b'"x"', b"true", b"NaN"])
def test_bodies_that_are_no_object_are_refused(world: World, content: bytes) -> None:
    answer = world.agent.send("POST", "runs", content=content)

    assert (answer.status, answer.data["code"]) == (400, "invalid_fields")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scope": [], "colour": 1}, "colour"),
        ({"scope": [], "co\u202elour": 1}, "co\\u202elour"),
        ({"scope": [], "x" * 500: 1}, "x" * 100),
        ({"scope": "shop:*"}, "scope"),
        ({"scope": [1]}, "scope[0]"),
        ({"scope": ["a", ["b"]]}, "scope[1]"),
        ({"scope": None}, "scope"),
        ({"scope": [], "reason": 7}, "reason"),
        ({"scope": [], "labels": {"a": 1}}, "labels.a"),
        ({"scope": [], "labels": []}, "labels"),
        ({"scope": [], "mode": "free"}, "mode"),
        ({"scope": [], "mode": ["enforce"]}, "mode"),
        ({"scope": [], "actor": "a\0b"}, "actor"),
        ({"scope": [], "actor": "\ud800"}, "actor"),
        ({"scope": [], "actor": "x" * 201}, "actor"),
    ],
)
def test_fields_that_are_wrong_are_named(world: World, body: dict[str, Any], field: str) -> None:
    answer = world.agent.post("runs", body)

    assert (answer.status, answer.data["code"]) == (400, "invalid_fields")
    assert answer.data["errors"][0]["field"] == field


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "*/*"]
)
def test_other_content_types_are_refused(world: World, content_type: str) -> None:
    answer = world.agent.send("POST", "runs", content=b'{"scope":[]}', content_type=content_type)

    assert (answer.status, answer.data["code"]) == (415, "unsupported_media_type")


def test_charset_parameter_is_no_other_content_type(world: World) -> None:
    content_type = "application/json; charset=utf-8"

    assert world.agent.send("POST", "runs", content=b'{"scope":[]}', content_type=content_type).status == 201


@pytest.mark.parametrize("path", ["nope", "runs/r/nope", "runs/", "runs/r/steps/x", "incidents", ""])
def test_unknown_routes_are_problems(world: World, path: str) -> None:
    answer = world.agent.get(path)

    assert (answer.status, answer.data["code"]) == (404, "not_found")
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "runs", "GET, POST, HEAD"),
        ("PUT", "runs/r", "GET, HEAD"),
        ("GET", "halt", "POST"),
        ("OPTIONS", "runs", "GET, POST, HEAD"),
        ("TRACE", "runs", "GET, POST, HEAD"),
        ("BREW", "runs", "GET, POST, HEAD"),
    ],
)
def test_other_methods_are_refused_and_the_right_ones_named(world: World, method: str, path: str, allowed: str) -> None:
    answer = world.agent.send(method, path)

    assert (answer.status, answer.data["code"]) == (405, "method_not_allowed")
    assert set(answer.headers["Allow"].split(", ")) == set(allowed.split(", "))


@pytest.mark.parametrize(
    "query", [{"stat": "open"}, {"limit": "0"}, {"limit": "201"}, {"limit": "x"}, {"since": "1h!"}]
)
def test_queries_that_nobody_reads_are_refused(world: World, query: dict[str, str]) -> None:
    answer = world.agent.get("runs", **query)

    assert (answer.status, answer.data["errors"][0]["field"]) == (400, next(iter(query)))


@pytest.mark.parametrize("name", ["actor", "tool", "tenant", "cursor"])
@pytest.mark.parametrize("value", ["\0", "a\0b", "\ud800"])
def test_queries_that_no_database_takes_are_refused(any_world: World, name: str, value: str) -> None:
    query = f"/v1/runs?{name}=" + "".join(f"%{byte:02x}" for byte in value.encode("utf-8", "surrogatepass"))

    assert any_world.agent.get(query).status in (200, 400)


def test_body_up_to_the_limit_is_taken_and_beyond_it_refused(world: World) -> None:
    run_id = open_run(world.agent)
    frame = len(json.dumps({"tool": "shop.tag", "args": {"x": ""}}))

    fits = world.agent.post(f"runs/{run_id}/calls", {"tool": "shop.tag", "args": {"x": "a" * (BODY_LIMIT - frame)}})
    beyond = world.agent.post(
        f"runs/{run_id}/calls", {"tool": "shop.tag", "args": {"x": "a" * (BODY_LIMIT - frame + 1)}}
    )

    assert (fits.status, beyond.status, beyond.data["code"]) == (201, 413, "body_too_large")


class Endless:
    """A body that never ends, and how much of it was read."""

    def __init__(self) -> None:
        self.taken = 0

    def read(self, size: int) -> bytes:
        self.taken += size
        return b"a" * size


def wrapped(limit: int = 100) -> tuple[Callable[..., Iterable[bytes]], list[bytes]]:
    seen: list[bytes] = []

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        seen.append(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        start_response("200 OK", [])
        return [b"fine"]

    return BodyLimit(application, limit=limit), seen


def serve(application: Callable[..., Iterable[bytes]], **environ: Any) -> tuple[str, bytes]:
    statuses: list[str] = []
    body = b"".join(application(environ, lambda status, headers: statuses.append(status)))
    return statuses[0], body


def test_endless_body_is_read_up_to_the_limit_only() -> None:
    application, seen = wrapped()
    endless = Endless()

    status, body = serve(application, **{"wsgi.input": endless, "HTTP_TRANSFER_ENCODING": "chunked"})

    assert (status, json.loads(body)["code"]) == ("413 Request Entity Too Large", "body_too_large")
    assert (endless.taken, seen) == (101, [])


def test_declared_length_beyond_the_limit_is_refused_unread() -> None:
    application, seen = wrapped()
    endless = Endless()

    statuses = {
        serve(application, **{"wsgi.input": endless, "CONTENT_LENGTH": length})[0]
        for length in ("101", "9" * 30, "-1", "1e3", "٣")
    }

    assert (statuses, endless.taken, seen) == ({"413 Request Entity Too Large"}, 0, [])


def test_chunked_body_is_handed_on_with_its_length() -> None:
    application, seen = wrapped()

    status, _ = serve(application, **{"wsgi.input": io.BytesIO(b"a" * 100), "HTTP_TRANSFER_ENCODING": "Chunked"})

    assert (status, seen) == ("200 OK", [b"a" * 100])


def test_body_that_breaks_off_is_no_error_of_ours() -> None:
    class Broken:
        def read(self, size: int) -> bytes:
            raise OSError("gone")

    application, seen = wrapped()

    status, body = serve(application, **{"wsgi.input": Broken(), "HTTP_TRANSFER_ENCODING": "chunked"})

    assert (status, json.loads(body)["code"], seen) == ("408 Request Timeout", "body_incomplete", [])
