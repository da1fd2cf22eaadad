"""Before a server is asked: whether it can be reached, and what is planned without its processor."""

import http.server
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.inference.engine.http.transport import reach
from cardiolens.inference.models.token_counts import EstimatedTokens
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import FRAME
from tests.unit.asked import served
from tests.unit.http_server import MODEL
from tests.unit.running_server import running
from tests.unit.small_cohort import sweep_spec

PATIENTS = 1
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
def url() -> Iterator[str]:
    with running(http.server.HTTPServer(("127.0.0.1", 0), Listing)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, {"data": [{"id": MODEL}]}, "answers"),
        (404, {"error": "no such page"}, "answers"),
        (401, {"error": {"message": "wrong key"}}, "401 Unauthorized: wrong key; check the key"),
    ],
)
def test_a_server_is_asked_whether_it_may_be_used(
    status: int, body: object, said: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWER, "status", status)
    monkeypatch.setitem(ANSWER, "body", body)
    try:
        line = reach(served(base_url=url))
    except InputError as error:
        line = str(error)
    assert line.startswith(url)
    assert said in line


def test_a_server_that_cannot_be_reached_is_named_at_once(url: str) -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached: "):
        reach(served(base_url="http://127.0.0.1:9/v1"))
    assert time.monotonic() - began < 15


def requests(root: Path, budget: int | str = 8, **told: Any) -> list[dict[str, Any]]:
    planned = plan(sweep_spec(root, served().model_dump() | told, subtask=["C10"], budget=[budget]))
    return tables.read(planned.run.requests("m"), schemas.REQUESTS).to_pylist()


def test_an_estimate_is_of_declared_image_tokens_and_a_third_of_the_characters() -> None:
    tokens = EstimatedTokens(100)
    assert tokens.count("six chars"[:6], "nine text", ((8, 8),) * 3) == 2 + 3 + 300
    assert tokens.image_tokens((8, 8)) == 100


def test_estimated_prompts_are_flagged_and_those_too_long_overflow(root: Path) -> None:
    (row,) = requests(root, image_tokens=100)
    shown = row["prompt"].count(FRAME)
    text = len(row["system"]) + len(row["prompt"])
    assert row["status"] == "planned"
    assert row["flags"][-1] == "estimated_tokens"
    assert 0 <= row["predicted_tokens"] - (100 * shown + text / 3) < 4
    (row,) = requests(root, image_tokens=100, max_model_len=800)
    assert row["status"] == "overflow"


def test_without_declared_image_tokens_nothing_is_predicted(root: Path) -> None:
    (row,) = requests(root)
    assert (row["status"], row["predicted_tokens"]) == ("planned", None)
    assert "estimated_tokens" not in row["flags"]


def test_a_budget_in_tokens_shows_as_many_frames_as_are_declared_to_fit(root: Path) -> None:
    (row,) = requests(root, budget="tokens:450", image_tokens=100)
    assert len(row["frames"]) == 4
