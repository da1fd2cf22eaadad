"""The doctor asks a server before a sweep does."""

import http.server
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.inference.engine.http.transport import reach
from tests.unit.asked import served
from tests.unit.http_server import MODEL
from tests.unit.running_server import running

ANSWER: dict[str, Any] = {"status": 200, "body": {"data": [{"id": MODEL}]}}


class Listing(http.server.BaseHTTPRequestHandler):
    """Answers every GET in one way."""

    def do_GET(self) -> None:
        content = json.dumps(ANSWER["body"]).encode()
        self.send_response(ANSWER["status"])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("SOME_KEY", "sk-0123456789abcdef")
    with running(http.server.HTTPServer(("127.0.0.1", 0), Listing)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, {"data": [{"id": "x"}, {"id": MODEL}]}, "answers and has the model"),
        (404, {"error": "no such page"}, "answers"),
        (200, {"data": [{"id": "other"}]}, "lists no model some-model, but other; correct http.api_model"),
        (401, {"error": {"message": "wrong key"}}, "401 Unauthorized: wrong key; check the key"),
    ],
)
def test_a_server_is_asked_what_it_serves(
    status: int, body: object, said: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWER, "status", status)
    monkeypatch.setitem(ANSWER, "body", body)
    try:
        line = reach(served(base_url=url))
    except InputError as error:
        line = str(error)
    assert line.startswith(url)
    assert line.endswith(said) or said in line


def test_a_server_that_cannot_be_reached_is_named_at_once(url: str) -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached: "):
        reach(served(base_url="http://127.0.0.1:9/v1"))
    assert time.monotonic() - began < 15
