"""A server of a model that thinks: the probabilities of its reasoning are no option's."""

from pathlib import Path
from typing import Any

import pytest

from cardiolens.inference.plan.plan import Plan, plan
from tests.unit.asked import Asked, served
from tests.unit.http_server import Server, answers
from tests.unit.small_cohort import make_cohort, sweep_spec

FIRST = {"A": -0.2, "B": -2.0}  # what the first token may be: of an answer, or of reasoning that begins "A"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    root = make_cohort(tmp_path_factory.mktemp("cohort"), 2)
    return plan(
        sweep_spec(root, served(dialect="vllm").model_dump(), subtask=["L01"], answer_format="choice")
    )


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-0123456789abcdef")


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
        (["A", "</think>", "A"], {"content": "A", "reasoning": "A"}, {}),
        (["A", "</think>", "A", "<|im_end|>"], {"content": "A"}, {}),  # its reasoning is not sent
        (["<think>", "A", "</think>", "B"], {"content": "<think>A</think>B"}, {}),
        (["<think>", "</think>", "A"], {"content": "<think></think>A"}, {}),
        (["<think>", "</think>", "A"], {"content": "A", "reasoning_content": ""}, {}),
        ([" ", "A"], {"content": " A"}, {}),
    ],
)
def test_only_the_token_that_is_the_reply_gives_probabilities(
    tokens: list[str], message: dict[str, str], kept: dict[str, float], planned: Plan, tmp_path: Path
) -> None:
    asked = Asked(planned, tmp_path, dialect="vllm")
    asked.against(Server(lambda *_: True, answers(choices=[choice(tokens, **message)])))
    assert [dict(row["option_logprobs"]) for row in asked.rows()] == [kept] * 2
