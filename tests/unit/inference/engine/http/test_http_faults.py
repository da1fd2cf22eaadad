"""A cohort asked over HTTP while the server fails: complete and equal, or ended with a true error."""

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import RunError
from cardiolens.inference.plan.plan import Plan
from cardiolens.storage import schemas, tables
from tests.unit import http_server
from tests.unit.asked import KEY, Asked, planned_for_server
from tests.unit.http_server import Fault, Server, answers, replies, says


@pytest.fixture(scope="module")
def undisturbed(planned: Plan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SOME_KEY", KEY)
        asked = Asked(planned, tmp_path_factory.mktemp("undisturbed"))
        server = Server()
        asked.against(server)
    assert len(asked.answered()) == len(server.seen) > 8
    return asked.answered()


PASSING: dict[str, Fault] = {
    "429": says(429, {"message": "slow down"}),
    "429 with Retry-After": says(429, {"message": "slow down"}, Retry_After="0.01"),
    "503 with Retry-After": says(503, "overloaded", Retry_After="0"),
    "slow": http_server.hangs,
    "cut": http_server.cuts,
    "wrong JSON": replies(200, b'{"choices": [{'),
    "no choices": answers(choices=[]),
    "no text": answers(choices=[{"message": {"content": None}, "finish_reason": "stop"}]),
    "text in parts": answers(choices=[{"message": {"content": ["A"]}, "finish_reason": "stop"}]),
    "negative tokens": answers(
        usage={"prompt_tokens": -1, "completion_tokens": 1}, choices=[{"message": {"content": "C"}}]
    ),
    "two answers": http_server.answers_twice,
}


def patience(fault: Fault) -> float:
    """Seconds of a try: few only where nothing comes, as a busy machine takes its time for a reply."""
    return 1.0 if fault is http_server.hangs else 600.0


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_fault_that_passes_changes_nothing(
    fault: Fault, planned: Plan, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    asked = Asked(planned, tmp_path, timeout_seconds=patience(fault))
    asked.against(Server(lambda number, body: number in (1, 4, 5, 9), fault))
    assert asked.answered() == undisturbed
    assert len(asked.rows()) == len(undisturbed)


LASTING: dict[str, tuple[Fault, str]] = {
    "429": (
        says(429, {"message": "slow down"}),
        "throttles requests: 429 Too Many Requests: slow down",
    ),
    "429 for an hour": (
        says(429, "quota", Retry_After="3600"),
        "asks to wait for 3600 s: run again after that",
    ),
    "no credit": (
        says(429, {"code": "insufficient_quota", "message": "pay"}),
        "the account has no credit left",
    ),
    "500": (says(500, {"message": "oops"}), "5 requests in a row failed, the last so: fails: 500 .*oops"),
    "slow": (http_server.hangs, "5 requests in a row failed, the last so: did not answer in time"),
    "wrong JSON": (
        replies(200, b"{"),
        "5 requests in a row failed, the last so: sent a malformed completion",
    ),
    "other model": (
        answers(model="another"),
        r"answered by 'another'; .*declare http.api_aliases: \[another\]",
    ),
    "redirect": (
        says(307, "moved", Location="http://example.org/"),
        "redirects to http://example.org/, which is",
    ),
    "401": (says(401, {"message": f"wrong key {KEY}"}), "401 Unauthorized: wrong key <key>; check the key"),
    "404": (says(404, {"message": "no such model"}), "404 Not Found: no such model; check http.base_url and"),
}


@pytest.mark.parametrize(("fault", "said"), LASTING.values(), ids=LASTING)
def test_a_fault_that_lasts_ends_the_run_with_its_cause(
    fault: Fault, said: str, planned: Plan, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    asked = Asked(planned, tmp_path, timeout_seconds=patience(fault), tries=3)
    server = Server(lambda number, body: number > 5, fault)
    with pytest.raises(
        RunError, match=rf"model m: http://127.0.0.1:\d+/v1 .*{said}.*; what was completed is kept"
    ):
        asked.against(server)
    kept = asked.answered()
    assert len(kept) == 5
    assert kept.items() <= undisturbed.items()
    assert KEY not in str(asked.rows())
    Asked(planned, tmp_path).against(Server())
    assert asked.answered() == undisturbed, "the same command goes on"


def test_a_request_that_nobody_may_make_is_not_made_for_ever(planned: Plan, tmp_path: Path) -> None:
    asked = Asked(planned, tmp_path)
    server = Server(lambda number, body: True, says(400, {"message": "unknown field seed"}))
    with pytest.raises(RunError, match=r"5 requests in a row failed, .*400 Bad Request: unknown field seed"):
        asked.against(server)
    assert len(server.seen) < 16


def test_nobody_there_is_said_and_costs_no_request_an_attempt(planned: Plan, tmp_path: Path) -> None:
    asked = Asked(planned, tmp_path, tries=3)
    with pytest.raises(RunError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached: .*2 tries"):
        asyncio.run(asked.run("http://127.0.0.1:9/v1"))
    assert asked.rows() == []


def test_a_request_that_is_too_long_is_recorded_and_the_others_answered(
    planned: Plan, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    asked = Asked(planned, tmp_path)
    too_long = says(400, {"message": "This model's maximum context length is 512 tokens"})
    asked.against(Server(lambda number, body: "late gadolinium" in body and number > 1, too_long))
    failed = {row["request_key"]: row["error"] for row in asked.rows() if row["status"] == "engine_error"}
    assert failed
    assert asked.answered() == {key: text for key, text in undisturbed.items() if key not in failed}
    assert all("400 Bad Request" in error and "max_model_len" in error for error in failed.values())
    Asked(planned, tmp_path).against(Server())
    assert asked.answered() == undisturbed


def test_a_filter_of_the_host_is_a_refusal(
    planned: Plan, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    asked = Asked(planned, tmp_path)
    filtered = says(400, {"code": "content_filter", "message": "no"})
    asked.against(Server(lambda number, body: number in (2, 3), filtered))
    refused = [row for row in asked.rows() if row["status"] == "refused"]
    assert len(refused) == 2
    assert len(asked.answered()) == len(undisturbed) - 2


def test_a_cap_ends_the_run_and_counts_what_earlier_runs_spent(
    planned: Plan, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    said = "max_tokens_total 1,000 is reached"
    asked = Asked(planned, tmp_path, at_once=3, max_tokens_total=1000)
    server = Server()
    with pytest.raises(RunError, match=f"{said}.*; raise it to go on; what was completed is kept"):
        asked.against(server)
    assert 10 <= len(server.seen) <= 10 + 3 - 1, "no more than what was in flight"
    assert len(asked.answered()) == len(server.seen)
    again = Server()
    with pytest.raises(RunError, match=said):
        asked.against(again)
    assert not again.seen
    Asked(planned, tmp_path).against(Server())
    assert asked.answered() == undisturbed


def test_a_throttling_server_is_asked_less_at_once(planned: Plan, tmp_path: Path) -> None:
    asked = Asked(planned, tmp_path, tries=20)
    server = Server(fault=says(429, "too much"))
    server.fails = lambda number, body: server.at_once > 2
    asked.against(server)
    free = Server()
    Asked(planned, tmp_path / "free").against(free)
    assert free.most_at_once > 2
    turned_away = len(server.seen) - len(asked.answered())
    assert 0 < turned_away < len(asked.answered())


HEADERS = {"Host", "User-Agent", "Authorization", "Accept", "Accept-Encoding"}
HEADERS |= {"Content-Type", "Content-Length"}


def test_nothing_that_is_sent_names_a_patient_a_study_or_a_question(
    root: Path, planned: Plan, tmp_path: Path
) -> None:
    asked = Asked(planned, tmp_path)
    server = Server()
    asked.against(server)
    questions = tables.read(root / "store" / "questions", schemas.QUESTIONS)
    names = {*questions["patient_id"].to_pylist(), *questions["study_id"].to_pylist()}
    names |= {*questions["qa_id"].to_pylist(), *asked.answered(), str(tmp_path), str(root)}
    for headers, body in server.seen:
        sent = json.loads(body)
        assert set(sent) == {"model", "messages", "max_tokens", "temperature", "top_p"}
        assert set(headers) == HEADERS
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert headers["Accept-Encoding"] == "identity"
        pictures = re.findall(rb"data:image/png;base64,([A-Za-z0-9+/=]+)", body)
        assert pictures
        whole = b"".join([body, str(headers).encode(), *map(base64.b64decode, pictures)])
        assert not [name for name in names if name.encode() in whole]


FIRST = {"A": -0.2, "B": -2.0}  # what the first token may be: of an answer, or of reasoning that begins "A"


def choice(tokens: list[str], **message: str) -> dict[str, Any]:
    top = [{"token": token, "logprob": logprob} for token, logprob in FIRST.items()]
    places = [{"token": token, "logprob": -0.2, "top_logprobs": top} for token in tokens]
    return {"message": message, "finish_reason": "stop", "logprobs": {"content": places}}


@pytest.mark.parametrize(
    ("tokens", "message", "kept"),
    [
        (["A"], {"content": "A"}, FIRST),
        (["A", "<|im_end|>"], {"content": "A"}, FIRST),
        (["A", " scar", "</think>", "B"], {"content": "B", "reasoning_content": "A scar"}, {}),
        (["A", "</think>", "A", "<|im_end|>"], {"content": "A"}, {}),  # its reasoning is not sent
        (["<think>", "A", "</think>", "B"], {"content": "<think>A</think>B"}, {}),
        (["<think>", "</think>", "A"], {"content": "A", "reasoning_content": ""}, {}),
        ([" ", "A"], {"content": " A"}, {}),
    ],
)
def test_only_the_token_that_is_the_reply_gives_probabilities(
    tokens: list[str], message: dict[str, str], kept: dict[str, float], root: Path, tmp_path: Path
) -> None:
    choosing = planned_for_server(root, "L01", dialect="vllm", decoding="choice")
    asked = Asked(choosing, tmp_path, dialect="vllm")
    asked.against(Server(lambda *_: True, answers(choices=[choice(tokens, **message)])))
    assert [dict(row["option_logprobs"]) for row in asked.rows()] == [kept] * 4
