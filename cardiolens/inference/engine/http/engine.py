"""Engine for a model behind an OpenAI-compatible server."""

import asyncio
import json
import os
import random
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from PIL import Image

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import (
    Ask,
    Engine,
    FrameCache,
    FrameWork,
    Pictures,
    Reply,
    RequestError,
)
from cardiolens.inference.engine.decoding import one_letter, sampling_of, structured_output_args
from cardiolens.inference.engine.http.http_reply import (
    FaultError,
    FaultKind,
    HttpAnswer,
    fault_in,
    is_filtered,
    read_reply,
    read_usage,
    wait_seconds,
)
from cardiolens.inference.engine.http.transport import Gate, Transport, check_leave
from cardiolens.protocol.tasks.legal import FREE
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import FRAME

NAME = "spent"
_FORMAT = b"%020d prompt and %020d output tokens\n"
_LINE = re.compile(rb"(\d{20}) prompt and (\d{20}) output tokens\n")

Tokens = tuple[int, int]
"""Prompt and output tokens."""


def spend(completions: Path, tokens: Tokens = (0, 0), *, at_least: Tokens = (0, 0)) -> Tokens:
    """Add to the tokens that all sweeps spent on a model, in the ledger beside its completions; return both.

    What was spent before counts as `at_least` so many. OSError if the file cannot be written or locked. Its
    line has one length, so it is never half written and needs no new disk space.
    """
    path = completions / NAME
    ledger = disk.open_shared(path)
    try:
        disk.lock(ledger, path)
        line = _LINE.fullmatch(os.pread(ledger, 256, 0) or _FORMAT % (0, 0))
        if line is None:
            raise InputError(
                f"{path}: is not the ledger of tokens that sweeps wrote; delete it, and the tokens of the "
                "completions beside it are counted"
            )
        spent = max(int(line[1]), at_least[0]) + tokens[0], max(int(line[2]), at_least[1]) + tokens[1]
        disk.overwrite(ledger, _FORMAT % spent, path)
        return spent
    finally:
        os.close(ledger)


def _count_stored(completions: Path) -> None:
    """Count the tokens of the completions in the store as spent; RunError if no ledger can be kept there."""
    try:
        completions.mkdir(parents=True, exist_ok=True)
        rows = tables.read(completions, schemas.COMPLETIONS, ("prompt_tokens", "output_tokens"))
        stored = pc.sum(rows["prompt_tokens"]).as_py() or 0, pc.sum(rows["output_tokens"]).as_py() or 0
        spend(completions, at_least=stored)
    except OSError as error:
        raise RunError(
            f"{completions}: the tokens that sweeps spend cannot be kept there ({error.strerror or error}), "
            "and a cap needs them; use a store that can be written and locked (flock), or remove the cap"
        ) from error


_LEVEL = 1  # of 9: takes a quarter of the default level's time, for 15 % more bytes


def body(model: ModelSpec, ask: Ask, url_of: Callable[[str], str]) -> bytes:
    """Return the JSON body of one chat completion; `url_of` returns a frame's data URL by its key."""
    http = model.served
    fields: dict[str, Any] = {
        **http.extra_body,
        "model": http.api_model,
        "messages": messages(ask, url_of),
        "max_tokens" if http.sends_sampling else "max_completion_tokens": ask.max_tokens,
    }
    if http.sends_sampling:
        temperature, seed = sampling_of(model.sampling, ask)
        fields |= {"temperature": temperature, "top_p": 1.0}  # else a server's default would count
        fields |= {} if seed is None else {"seed": seed}
    if model.template_options:
        fields["chat_template_kwargs"] = dict(model.template_options)
    if ask.constraint != FREE and http.dialect == "vllm":
        fields["structured_outputs"] = structured_output_args(ask)
        if one_letter(ask):
            fields |= {"logprobs": True, "top_logprobs": min(20, len(ask.constraint.legal))}
    return json.dumps(fields, ensure_ascii=False).encode()


def messages(ask: Ask, url_of: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return the system and user message, with each frame at its mark (U+FFFC) in the text."""
    content: list[dict[str, Any]] = []
    keys = iter(ask.frame_keys)
    for place, piece in enumerate(ask.text.split(FRAME)):
        if place:
            content.append({"type": "image_url", "image_url": {"url": url_of(next(keys))}})
        if piece:
            content.append({"type": "text", "text": piece})
    return [{"role": "system", "content": ask.system}, {"role": "user", "content": content}]


def data_url(pixels: np.ndarray) -> str:
    """Encode a frame as a PNG data URL: lossless, one or three channels, no metadata."""
    png = BytesIO()
    Image.fromarray(pixels).save(png, "PNG", compress_level=_LEVEL)
    return f"data:image/png;base64,{b64encode(png.getvalue()).decode()}"


_LONGEST_WAIT = 600.0  # seconds; if a server asks for a longer wait, the run ends
_HOPELESS = 5  # after this many failed requests in a row, the fault is the server's and the run ends
_FIRST_TRIES = 2  # of connections to a server that has answered nothing in this run
_CACHE_BYTES = 128 << 20  # of data URLs


class HttpEngine(Engine):
    """Engine that asks a server with adaptive concurrency, retries, and a cap on tokens.

    `draw` returns random numbers in 0..1, which spread the waits; `tries` are those of one request in a run.
    """

    def __init__(
        self,
        model: ModelSpec,
        completions: Path,
        draw: Callable[[], float] = random.random,
        *,
        tries: int = 8,
        first_wait: float = 1.0,  # seconds before the second try; doubled each time
    ) -> None:
        self._model = model
        self._http = model.served
        self._completions = completions  # folder of this model's completions and ledger
        self._draw = draw
        self._tries, self._first_wait = tries, first_wait
        self._urls = FrameCache(data_url, len, _CACHE_BYTES)
        self._answered = 0
        self._failed_in_a_row = 0

    async def start(self) -> None:
        check_leave(self._model)
        if self._http.max_tokens_total is not None:
            _count_stored(self._completions)
        self._gate = Gate(self._model.at_once)
        self._transport = Transport(self._model)

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        content = body(self._model, ask, lambda key: self._urls.of(key, pictures))
        failures: Counter[FaultKind] = Counter()
        while True:
            answered = self._answered
            try:
                return await self._try(content, ask, failures[FaultKind.THROTTLED] + 1)
            except FaultError as fault:
                failures[fault.kind] += 1
                if fault.kind is FaultKind.THROTTLED and self._answered > answered:
                    failures[fault.kind] = 1  # other requests succeed, so this request will, too
                await self._go_on(fault, failures)

    def frames(self) -> FrameWork:
        return FrameWork(processed=self._urls.made)

    def close(self) -> None:
        self._closing = asyncio.ensure_future(self._transport.aclose())

    async def _try(self, content: bytes, ask: Ask, times_throttled: int) -> Reply:
        async with self._gate.slot() as entered:
            self._check_cap()
            try:
                reply = self._read(await self._transport.ask("POST", "chat/completions", content), ask)
            except FaultError as fault:
                if fault.kind is FaultKind.THROTTLED:
                    self._gate.throttled(entered, self._wait(fault, times_throttled))
                raise
            self._gate.succeeded()
        self._answered += 1
        self._failed_in_a_row = 0
        return reply

    def _check_cap(self) -> None:
        """RunError if the tokens of all sweeps, cached prompt tokens too, reach the cap."""
        cap = self._http.max_tokens_total
        if cap is not None and (tokens := sum(spend(self._completions))) >= cap:
            raise self._end(f"max_tokens_total {cap:,} is reached ({tokens:,} tokens); raise it to go on")

    def _read(self, answer: HttpAnswer, ask: Ask) -> Reply:
        """Read a reply, and count its tokens even if the rest of the reply is unusable."""
        if is_filtered(answer):
            return Reply("", "content_filter", refused=True)
        if answer.status != 200:
            raise fault_in(answer)
        if self._http.max_tokens_total is not None and (usage := read_usage(answer)):
            spend(self._completions, (usage.prompt_tokens, usage.completion_tokens))
        return read_reply(answer, self._http, ask)

    async def _go_on(self, fault: FaultError, failures: Counter[FaultKind]) -> None:
        """Wait before the next try; RequestError or RunError if no try is left."""
        tries = failures.total()
        wait = self._wait(fault, tries)
        if wait > _LONGEST_WAIT:
            raise self._end(f"{fault}; it asks to wait for {fault.retry_after:g} s: run again after that")
        most = self._tries
        if fault.kind is FaultKind.UNREACHABLE and not self._answered:  # waiting seldom helps
            most = min(_FIRST_TRIES, most)
        if tries >= most or failures[fault.kind] >= fault.kind.tries:
            raise self._give_up(fault, tries)
        if fault.kind is not FaultKind.THROTTLED:  # after throttling, the gate delays all requests
            await self._gate.wait(wait)

    def _wait(self, fault: FaultError, tries: int) -> float:
        return wait_seconds(self._first_wait, tries, self._draw(), fault.retry_after)

    def _give_up(self, fault: FaultError, tries: int) -> Exception:
        message = f"{fault}{f' ({tries} tries)' if tries > 1 else ''}"
        if fault.kind.ends_run:
            return self._end(message)
        # Once the server has answered other requests, a rejection is the fault of the request.
        if fault.kind is not FaultKind.REJECTED or not self._answered:
            self._failed_in_a_row += 1
        if self._failed_in_a_row >= _HOPELESS:
            return self._end(f"{_HOPELESS} requests in a row failed, the last so: {message}")
        return RequestError(fault.kind.error, f"{self._http.host} {message}")

    def _end(self, why: str) -> RunError:
        """Close the gate and return the error: nothing more is sent, requests in flight may finish."""
        message = f"model {self._model.name}: {self._http.base_url} {why}; what was completed is kept"
        self._gate.close(message)
        return RunError(message)
