"""Models behind HTTP the whole way: servers that fail, a cap, and vLLM's own server beside its engine."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cardiolens.base.sanitize import several_lines
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.engine.http.engine import HttpEngine
from cardiolens.protocol.tasks.legal import Constraint
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import FRAME
from tests.ray.conftest import ASKED, Place
from tests.support.tiny_model import FOLDER
from tests.unit import http_server
from tests.unit.http_server import MODEL, Fault, Server, answers, replies, says, serving

pytestmark = [pytest.mark.ray, pytest.mark.full]

STORM: list[Fault] = [
    says(429, "slow down", Retry_After="0.1"),
    says(429, "slow down"),
    says(500, "oops"),
    http_server.cuts,
    http_server.cuts_in_the_middle,
    http_server.hangs,
    replies(200, b"<html>"),
    answers(choices=[]),
    http_server.answers_twice,
]
SERVED = """
{name}:
  engine: http
  revision: as tested
  long_side: 64
  http:
    base_url: {url}
    api_model: {model}
    {more}
"""


@contextlib.contextmanager
def in_the_background(*servers: Server) -> Iterator[list[str]]:
    """Base URLs of servers that run in a thread of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    stack = contextlib.AsyncExitStack()
    try:
        yield [run(stack.enter_async_context(serving(server))) for server in servers]
    finally:
        run(stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def replies(place: Place, model: str) -> dict[tuple[str, ...], tuple[str, int]]:
    """Text and prompt tokens by question and arm, whatever the model is called."""
    arms = {arm["arm_id"]: arm for arm in place.manifest()["arms"] if arm["model"] == model}
    key = place.manifest()["models"][model]["model_key"]
    rows = tables.read(place.root / "store" / "completions" / key, schemas.COMPLETIONS).to_pylist()
    said = {row["request_key"]: (row["text"], row["prompt_tokens"]) for row in rows if row["status"] == "ok"}
    assert len(said) == len(rows), "each request is completed once"
    requests = tables.read(place.run / "requests" / model, schemas.REQUESTS).to_pylist()
    named = ("selector", "budget", "prompt")
    return {
        (row["qa_id"], *(str(arms[row["arm_id"]][name]) for name in named)): said[row["request_key"]]
        for row in requests
        if row["request_key"] in said
    }


def test_a_storm_changes_nothing_and_a_cap_stops_one_model_alone(place: Place) -> None:
    calm, capped = Server(), Server()
    stormy = Server(lambda number, body: number % 7 == 0)

    async def fault(server: Server, *call: Any) -> Any:
        return await STORM[len(server.seen) // 7 % len(STORM)](server, *call)

    stormy.fault = fault
    with in_the_background(calm, stormy, capped) as urls:
        told = {"calm": "", "stormy": "timeout_seconds: 2", "capped": "max_tokens_total: 2000"}
        for (name, more), url in zip(told.items(), urls, strict=True):
            place.write_model(name, SERVED.format(name=name, url=url, model=MODEL, more=more))
        words = [word for word in ASKED if not word.startswith("model")]
        words += ["limit=2", f"model=[{','.join(told)}]", "keep_going=true"]
        printed = place.sweep(*words, expect=1)
    ended = f"not run: capped: the stream ended early: model capped: {urls[2]} max_tokens_total 2,000"
    assert ended in printed, printed
    assert replies(place, "stormy") == replies(place, "calm")
    assert len(stormy.seen) > 1.1 * len(calm.seen)
    kept = place.manifest()["models"]["capped"]["model_key"]
    assert tables.read(place.root / "store" / "completions" / kept, schemas.COMPLETIONS).num_rows == len(
        capped.seen
    )
    assert 20 <= len(capped.seen) < 20 + 16, "what was in flight, and nothing more"
    verdicts = tables.read(place.run / "verdicts", schemas.VERDICTS, ("arm_id", "status")).to_pylist()
    missing = {row["arm_id"].split("-")[0] for row in verdicts if row["status"] == "missing"}
    assert missing == {"capped"}


@pytest.fixture(scope="module")
def vllm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """vLLM's own server with the tiny model; its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    options = {
        "model": str(FOLDER),
        "served-model-name": "tiny",
        "host": "127.0.0.1",
        "port": str(port),
        "dtype": "float32",
        "max-model-len": "8192",
        "max-num-seqs": "128",
        "generation-config": "vllm",
        "limit-mm-per-prompt": '{"image": 16}',
        "seed": "0",
    }
    # The `vllm` command of the CPU build does not start: it looks for a package named vllm.
    command = [sys.executable, "-m", "vllm.entrypoints.launchers.api_server.entry", "--enforce-eager"]
    command += [word for name, value in options.items() for word in (f"--{name}", value)]
    environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    with log.open("w") as written:
        running = subprocess.Popen(command, env=environment, stdout=written, stderr=subprocess.STDOUT)
    try:
        wait_for_health(f"http://127.0.0.1:{port}/health", running, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        running.terminate()
        running.wait(60)


def wait_for_health(url: str, running: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 1500
    while time.monotonic() < deadline:
        assert running.poll() is None, log.read_text()[-3000:]
        with contextlib.suppress(OSError), urllib.request.urlopen(url) as health:
            assert health.status == 200
            return
        time.sleep(0.2)
    raise AssertionError(log.read_text()[-3000:])


@pytest.mark.long
def test_a_server_of_vllm_answers_as_its_engine(place: Place, vllm_server: str) -> None:
    words = [word.replace("model=[tiny]", "model=[tiny,served]") for word in ASKED]
    words += [word.replace("tiny", "served") for word in ASKED if word.startswith("model.tiny")]
    place.sweep(
        *words, "+model.tiny.engine_options.dtype=float32", f"model.served.http.base_url={vllm_server}"
    )
    served, own = replies(place, "served"), replies(place, "tiny")
    assert served.keys() == own.keys()
    assert [served[key][1] for key in own] == [own[key][1] for key in own], "prompt tokens"
    # Requests meet in other batches here and there; in float32 hardly any reply parts for that. Random
    # weights write control characters, which a server's words lose.
    same = sum(served[key][0] == several_lines(own[key][0]) for key in own)
    assert same >= 0.98 * len(own)


@pytest.mark.long
def test_structured_decoding_of_a_server_gives_legal_letters_and_their_probabilities(
    vllm_server: str, tmp_path: Path
) -> None:
    http = {"base_url": vllm_server, "api_model": "tiny", "dialect": "vllm"}
    model = ModelSpec.model_validate({"name": "m", "engine": "http", "revision": "r", "http": http})
    text = f"Frame 1: {FRAME}Which one? A. This B. That C. None"
    frame_HW = np.arange(64 * 64, dtype=np.uint8).reshape(64, 64)

    async def ask() -> Any:
        engine = HttpEngine(model, tmp_path)
        await engine.start()
        legal = Constraint(legal=("A", "B", "C"))
        asked = Ask("k", "Answer.", text, ("f",), "single", ("a", "b", "c"), 8, legal)
        reply = await engine.answer(asked, lambda key: frame_HW)
        others = asyncio.all_tasks()
        engine.close()
        await asyncio.gather(*asyncio.all_tasks() - others)
        return reply

    reply = asyncio.run(ask())
    assert reply.text in {"A", "B", "C"}
    assert sum(map(np.exp, reply.option_logprobs.values())) == pytest.approx(1, abs=1e-3)
    assert reply.option_logprobs[reply.text] == max(reply.option_logprobs.values())
