"""The parts of the HTTP engine that need no server: schedule, window, ledger, bodies, replies, access."""

import asyncio
import base64
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec, Sampling
from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.engine.http.engine import NAME, body, data_url, messages, spend
from cardiolens.inference.engine.http.http_reply import (
    read_reply,
    read_retry_after,
    sanitised_answer,
    wait_seconds,
)
from cardiolens.inference.engine.http.transport import Gate, check_access, is_loopback, proxy_of, way_to
from cardiolens.protocol.tasks.legal import Constraint
from cardiolens.storage.schemas import FRAME
from tests.unit.config.test_http_spec import model, sweep
from tests.unit.http_server import MODEL, completion

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ask(
    text: str = "q", frames: tuple[str, ...] = (), legal: tuple[str, ...] = (), reasons_first: bool = False
) -> Ask:
    held = Constraint(legal, "last_line" if reasons_first else "")
    return Ask("key", "system", text, frames, "single", ("A", "B"), 8, held)


@given(st.integers(1, 10_000), st.floats(0, 1), st.none() | st.floats(0, 1e6))
def test_a_wait_is_never_shorter_than_the_server_asked(tries: int, draw: float, asked: float | None) -> None:
    wait = wait_seconds(0.5, tries, draw, asked)
    assert (asked or 0.25) <= wait <= max(60, 1.1 * (asked or 0))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7), ("0.5", 0.5), ("-3", 0),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60), ("Wed, 31 Dec 2025 00:00:00 GMT", 0),
        ("soon", None), ("", None), ("inf", None), ("nan", None), (None, None),
    ],
)  # fmt: skip
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert read_retry_after(header, NOW) == seconds


def test_the_gate_lets_in_no_more_than_its_window_and_none_while_paused() -> None:
    async def crowd() -> tuple[int, float]:
        gate, inside, most = Gate(3), 0, 0
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with gate.slot() as entered:
            gate.throttled(entered, 0.02)
            gate.throttled(entered, 0.05)
            gate.throttled(entered, 0.01)  # shorter: changes nothing

        async def visit() -> float:
            nonlocal inside, most
            async with gate.slot() as entered:
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1
            return entered

        first, *_ = await asyncio.gather(*(visit() for _ in range(20)))
        return most, first - begun

    most, waited = asyncio.run(crowd())
    assert most == 1, "3, halved"
    assert 0.045 < waited < 5


def test_a_visitor_who_gives_up_leaves_no_trace() -> None:
    async def leave() -> None:
        gate = Gate(1)

        async def visit() -> None:
            async with gate.slot():
                pass

        async with gate.slot():
            waiting = asyncio.create_task(visit())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.wait_for(visit(), 5)

    asyncio.run(leave())


def test_frames_stand_where_the_text_has_their_places() -> None:
    asked = ask(f"Frame 1: {FRAME}Frame 2: {FRAME}What?", ("a", "b"))
    assert messages(asked, lambda key: f"url of {key}") == [
        {"role": "system", "content": "system"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Frame 1: "},
                {"type": "image_url", "image_url": {"url": "url of a"}},
                {"type": "text", "text": "Frame 2: "},
                {"type": "image_url", "image_url": {"url": "url of b"}},
                {"type": "text", "text": "What?"},
            ],
        },
    ]


def test_a_picture_is_lossless_and_holds_nothing_but_pixels() -> None:
    pixels_HW = np.random.default_rng(1).integers(0, 256, (7, 5), dtype=np.uint8)
    written = base64.b64decode(data_url(pixels_HW).removeprefix("data:image/png;base64,"))
    read = Image.open(BytesIO(written))
    assert (np.asarray(read) == pixels_HW).all()
    assert not read.info


def sent(served: ModelSpec, asked: Ask) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(body(served, asked, str))
    del fields["messages"]
    return fields


def test_decoding_is_sent_as_the_server_understands_it() -> None:
    plain = {"model": "some-model", "max_tokens": 8, "temperature": 0.0, "top_p": 1.0}
    assert sent(model(), ask(legal=("A", "B"))) == plain
    bound = {"structured_outputs": {"choice": ["A", "B"]}, "logprobs": True, "top_logprobs": 2}
    assert sent(model(dialect="vllm"), ask(legal=("A", "B"))) == plain | bound
    reasoned = sent(model(dialect="vllm"), ask(legal=("A", "B"), reasons_first=True))
    assert set(reasoned["structured_outputs"]) == {"regex"}
    assert "logprobs" not in reasoned
    thinking = model(dialect="reasoning", extra_body={"reasoning_effort": "low"})
    expected = {"model": "some-model", "max_completion_tokens": 8, "reasoning_effort": "low"}
    assert sent(thinking, ask()) == expected


def test_a_sample_is_sent_with_its_own_seed_and_temperature() -> None:
    """The model's own stand in every other request."""
    served = model().model_copy(update={"sampling": Sampling(temperature=0.2, seed=40)})
    assert {sent(served, ask())[name] for name in ("temperature", "seed")} == {0.2, 40}
    one = sent(served, replace(ask(), seed=41, temperature=0.7))
    assert (one["temperature"], one["seed"]) == (0.7, 41)


def reply(asked: Ask, **changes: Any) -> Any:
    whole = completion({"messages": []}, **changes)
    answer = sanitised_answer(200, {}, json.dumps(whole).encode())
    return read_reply(answer, model(api_model=MODEL, api_aliases=["alias"]).served, asked)


def test_log_probabilities_of_legal_letters_are_kept() -> None:
    first = [{"token": token, "logprob": each} for token, each in (("A", -0.1), ("B", -9999.0), ("x", -1))]
    choice = {
        "message": {"content": "A"},
        "finish_reason": "stop",
        "logprobs": {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": first}]},
    }
    assert reply(ask(legal=("A", "B")), choices=[choice]).option_logprobs == {"A": -0.1}
    assert reply(ask(), choices=[choice]).option_logprobs == {}


def test_a_refusal_by_the_host_is_no_failure() -> None:
    filtered = {"message": {"content": None}, "finish_reason": "content_filter"}
    assert reply(ask(), choices=[filtered]).refused
    refused = {"message": {"content": None, "refusal": "I cannot"}, "finish_reason": "stop"}
    found = reply(ask(), choices=[refused])
    assert (found.refused, found.text) == (True, "I cannot")
    cut = {"message": {"content": None}, "finish_reason": "length"}
    assert (reply(ask(), choices=[cut]).refused, reply(ask(), choices=[cut]).text) == (False, "")


def test_frames_leave_this_machine_only_with_leave() -> None:
    outside = "model.served.http.base_url=https://api.example.org/v1"
    with pytest.raises(InputError, match=r"sent to api\.example\.org.*served\.http\.allow_external=true"):
        check_access(sweep(outside))
    check_access(sweep(outside, "+model.served.http.allow_external=true"))
    check_access(sweep(outside, "mode=plan"))
    check_access(sweep())


def test_a_missing_key_is_named_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    named = "+model.served.http.api_key_env=SOME_KEY"
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(InputError, match="environment variable SOME_KEY is not set"):
        check_access(sweep(named))
    monkeypatch.setenv("SOME_KEY", "k")
    check_access(sweep(named))


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
        ("10.0.0.1", False), ("localhost.example.org", False),
        ("127.0.0.1.example.org", False), ("gpu07", False),
    ],
)  # fmt: skip
def test_loopback_is_this_machine_alone(host: str, here: bool) -> None:
    assert is_loopback(host) == here


def test_a_proxy_is_used_for_other_hosts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example.org")
    for base in ("http://127.0.0.1:1/v1", "http://localhost/v1", "https://inside.example.org/v1"):
        assert proxy_of(model(base_url=base).served) is None
    other = model(base_url="https://x.org/v1").served
    assert proxy_of(other) == "http://proxy:3128"
    assert way_to(other).endswith("through a proxy that the environment names")
    monkeypatch.setenv("https_proxy", "proxy:3128")
    assert proxy_of(other) == "http://proxy:3128"


TOKENS = st.integers(0, 2**31 - 1)


def test_sweeps_that_write_at_once_lose_no_entry(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda _: [spend(tmp_path, (3, 1)) for _ in range(25)], range(3)))
    assert spend(tmp_path) == (225, 75)


@given(st.lists(st.tuples(TOKENS, TOKENS)), st.tuples(TOKENS, TOKENS))
def test_what_was_spent_is_at_least_what_completions_tell(
    tmp_path_factory: pytest.TempPathFactory, spent: list[tuple[int, int]], stored: tuple[int, int]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    for entry in spent:
        spend(folder, entry)
    told = spend(folder)
    assert told == (sum(prompt for prompt, _ in spent), sum(output for _, output in spent))
    assert spend(folder, at_least=stored) == (max(told[0], stored[0]), max(told[1], stored[1]))


@pytest.mark.parametrize("content", [b"x", b"\n", b"1 2\n", b"-" * 58, b"9" * 1000])
def test_a_ledger_that_sweeps_did_not_write_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(InputError, match="is not the ledger of tokens that sweeps wrote; delete it"):
        spend(tmp_path)


def test_the_window_grows_fast_until_throttled_then_slowly() -> None:
    async def sizes() -> list[int]:
        gate, seen = Gate(100), []
        loop = asyncio.get_running_loop()
        for replies in (24, 17):
            for _ in range(replies):
                gate.succeeded()
            seen.append(gate.size)
            before = loop.time() - 1
            gate.throttled(loop.time(), 0)
            gate.throttled(before, 0)  # sent before the cut
            seen.append(gate.size)
        return seen

    assert asyncio.run(sizes()) == [32, 16, 17, 8]
