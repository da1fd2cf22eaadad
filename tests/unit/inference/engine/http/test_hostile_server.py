"""A server that means harm: its words poison no table and no terminal, and its bodies no memory.

Each attack comes in the middle of answers that were paid for. These are on disk when it is over.
"""

import asyncio
import json
import tempfile
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardiolens.base.errors import RunError
from cardiolens.inference.plan.plan import Plan
from tests.unit.asked import KEY, Asked, planned_for_server
from tests.unit.http_server import Fault, Server, answers, replies, says, serving
from tests.unit.small_cohort import make_cohort

pytestmark = pytest.mark.full

ATTACKED = (2, 3)  # calls, among others that are answered
MIB = 2**20


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Four requests, for attacks in great number."""
    return planned_for_server(make_cohort(tmp_path_factory.mktemp("few"), 2), "C01", "C03", "L01")


def choice(content: object, **more: object) -> list[dict[str, object]]:
    return [
        {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop", **more}
    ]


def attacked(planned: Plan, folder: Path, fault: Fault, **http: Any) -> Asked:
    """A run that is attacked in two of its calls, each of which is made once."""
    asked = Asked(planned, folder, tries=1, **http)
    server = Server(lambda number, body: number in ATTACKED, fault)
    asked.against(server)
    return asked


def clean(text: str | None) -> bool:
    """Whether text can be stored, and printed line by line without moving a cursor."""
    return text is None or all(category(c) not in ("Cc", "Cs") or c in "\n\t" for c in text)


HOSTILE = {
    "a lone surrogate": "half \ud83d of a pair",
    "a terminal escape": "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "lines": "one\r\ntwo\rthree\n\nerror: four",
    "absurdly long": "a" * MIB,
}


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("form", ["reply", "model", 400, 500])
def test_hostile_words_are_cleaned_and_lose_no_paid_answer(
    words: str, form: str | int, planned: Plan, tmp_path: Path
) -> None:
    if isinstance(form, int):
        fault = says(form, {"message": words, "code": words})
    else:
        changed: dict[str, object] = {"model": words}
        if form == "reply":
            changed = {"choices": choice(words, finish_reason=words)}
        fault = answers(**changed)
    asked = Asked(planned, tmp_path, tries=2)
    said = [asked.ended(Server(lambda number, _: number > 3, fault))]
    rows = asked.rows()
    said += [row["error"] or "" for row in rows]
    assert any(said) or form == "reply"
    assert all(not line or (line.isprintable() and len(line) < 1000) for line in said), said
    for row in rows:
        assert clean(row["text"])
        assert len(row["text"] or "") < 64 * 1024
        assert len(row["finish_reason"] or "") <= 64
        assert (row["finish_reason"] or "").isprintable()
    if any(said):
        assert len(asked.answered()) == 3
        Asked(planned, tmp_path).against(Server())
    assert len(asked.answered()) > 3, "the same command goes on"


@given(st.text(st.characters(codec=None), max_size=60))
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
def test_whatever_a_server_says_is_stored_or_refused(few: Plan, words: str) -> None:
    for fault in (
        answers(choices=choice(words, finish_reason=words)),
        answers(model=words),
        says(400, {"message": words}),
        replies(503, words.encode("utf-16", "surrogatepass")),
    ):
        with tempfile.TemporaryDirectory() as folder:
            asked = Asked(few, Path(folder), tries=1)
            assert asked.ended(Server(lambda number, _: number in ATTACKED, fault)).isprintable()
            assert all(clean(row["text"]) and (row["error"] or "").isprintable() for row in asked.rows())
            assert asked.answered()


BODIES = {
    "deep lists": b"[" * 200_000,
    "deep and whole": b'{"choices":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "a number of a million digits": b'{"usage": {"prompt_tokens": ' + b"9" * 10**6 + b"}}",
    "NaN": b'{"usage": {"prompt_tokens": NaN, "completion_tokens": -Infinity}}',
    "no JSON": b"\xff\xfe\x00\x1b[2J",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("status", [200, 503])
def test_a_body_that_is_no_completion_fails_its_request_alone(
    body: bytes, status: int, planned: Plan, tmp_path: Path
) -> None:
    asked = attacked(planned, tmp_path, replies(status, body))
    assert len(asked.answered()) > len(ATTACKED)
    failed = [row["error"] for row in asked.rows() if row["status"] == "engine_error"]
    assert len(failed) == len(ATTACKED)
    assert all(error.isprintable() and len(error) < 1000 for error in failed)


USAGE = [float("nan"), -1, 2**31, "1e9", None, []]


@pytest.mark.parametrize("count", USAGE, ids=map(repr, USAGE))
@pytest.mark.parametrize("name", ["prompt_tokens", "cached_tokens"])
def test_a_count_of_tokens_that_cannot_be_fails_its_request_alone(
    name: str, count: object, planned: Plan, tmp_path: Path
) -> None:
    usage: dict[str, object] = {"prompt_tokens": 100, "completion_tokens": 4}
    usage |= {"prompt_tokens_details": {name: count}} if name == "cached_tokens" else {name: count}
    asked = attacked(planned, tmp_path, answers(usage=usage))
    assert len(asked.answered()) >= len(ATTACKED)
    assert all(0 <= (row[n] or 0) < 2**31 for row in asked.rows() for n in ("prompt_tokens", "output_tokens"))


async def endless(server: Server, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
    """Sends a body without end."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    sent = 0
    while sent < 512 * MIB:
        await response.write(b" " * MIB)
        sent += MIB
    server.port = -sent  # nobody stopped it
    return response


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 * MIB


def test_a_body_without_end_is_left_at_the_limit(planned: Plan, tmp_path: Path) -> None:
    server = Server(lambda number, _: number == 2, endless)
    asked = Asked(planned, tmp_path, tries=2, at_once=2)
    with little_memory():
        asked.against(server)
    assert server.port >= 0
    assert len(asked.answered()) > 2


@pytest.mark.parametrize("status", [200, 500])
def test_a_body_that_swells_is_not_unpacked(status: int, planned: Plan, tmp_path: Path) -> None:
    packer = zlib.compressobj(9, wbits=31)
    body = b"".join([*(packer.compress(b" " * MIB) for _ in range(256)), packer.flush()])
    asked = Asked(planned, tmp_path, tries=2)
    fault = replies(status, body, Content_Encoding="gzip")
    with little_memory():
        assert "its reply is compressed" in asked.ended(Server(lambda number, _: number == 4, fault))
    assert len(asked.answered()) >= 3


@pytest.mark.parametrize("logprob", [5.0, float("nan")])
def test_a_probability_above_one_is_none(logprob: float, planned: Plan, tmp_path: Path) -> None:
    top = {"content": [{"top_logprobs": [{"token": "A", "logprob": logprob}]}]}
    asked = attacked(planned, tmp_path, answers(choices=choice("ANSWER: A", logprobs=top)), dialect="vllm")
    assert all(value <= 0 for row in asked.rows() for _, value in row["option_logprobs"] or ())


@pytest.mark.parametrize("kept", [0, len(KEY) - 1])
def test_a_key_is_blotted_before_text_is_cut(kept: int, planned: Plan, tmp_path: Path) -> None:
    asked = Asked(planned, tmp_path, tries=2)
    words = "x" * (300 - kept) + KEY + "y" * 500
    server = Server(lambda number, _: number > 3, says(404, {"message": words}))
    told = [asked.ended(server), *(row["error"] for row in asked.rows() if row["error"])]
    assert all(told)
    assert not [line for line in told if KEY[:4] in line]


REPEATS = {
    "in a reply, with a NUL in it": answers(choices=choice("\0".join(KEY))),
    "as the reason of its end": answers(choices=choice("A", finish_reason=KEY)),
    "as a refusal": answers(choices=[{"message": {"content": None, "refusal": KEY}}]),
    "as the model": answers(model=KEY),
    "in half of a completion": replies(200, b"{" + b" " * 190 + KEY.encode()),
    "as a redirect": replies(302, b"", Location=f"http://x/{KEY}"),
    "in another place of the JSON": replies(200, json.dumps({KEY: {KEY: 1}}).encode()),
}


@pytest.mark.parametrize("fault", REPEATS.values(), ids=REPEATS)
def test_a_key_that_the_server_repeats_is_stored_nowhere(
    fault: Fault, planned: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked(planned, tmp_path, tries=2)
    said = asked.ended(Server(lambda number, _: number in ATTACKED, fault))
    rows = str(asked.rows())
    assert rows
    for place in (said, rows, caplog.text):
        assert KEY[:8] not in place


def test_two_sweeps_that_share_a_store_share_its_cap(planned: Plan, tmp_path: Path) -> None:
    """Both ask at once, all that each is allowed at once: no more than that is asked above the cap."""
    cap, at_once = 5 * 104, 2
    server = Server()

    async def run() -> list[BaseException | None]:
        async with serving(server) as base_url:
            sweeps = (Asked(planned, tmp_path, max_tokens_total=cap, at_once=at_once) for _ in "ab")
            return await asyncio.gather(*(sweep.run(base_url) for sweep in sweeps), return_exceptions=True)

    ended = asyncio.run(run())
    assert all("max_tokens_total 520 is reached" in str(error) for error in ended)
    assert len(server.seen) <= 5 + 2 * at_once


def test_what_could_not_be_used_counts_towards_the_cap_in_later_runs_too(
    planned: Plan, tmp_path: Path
) -> None:
    unusable = Server(lambda number, _: True, answers(choices=choice(None)))
    first = Asked(planned, tmp_path, tries=3, max_tokens_total=208, at_once=1)
    assert "max_tokens_total" in first.ended(unusable)
    assert len(unusable.seen) == 2
    again = Server()
    assert "max_tokens_total" in Asked(planned, tmp_path, max_tokens_total=208).ended(again)
    assert not again.seen


def test_the_password_of_a_proxy_is_told_nobody(
    planned: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A proxy that wants another password, before a server that is asked over TLS."""
    secret = "Tr0ub4dor-and-3"

    async def turn_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 no " + secret.encode() + b"\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def run() -> None:
        proxy = await asyncio.start_server(turn_away, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://me:{secret}@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")
        asked = Asked(planned, tmp_path, tries=1, allow_external=True)
        async with proxy:
            await asked.run("https://example.invalid/v1")

    with pytest.raises(RunError, match="407") as raised:
        asyncio.run(run())
    for said in (str(raised.value), caplog.text, str(Asked(planned, tmp_path).rows())):
        assert secret not in said
