"""Walk along a chain: render and key each stage from the replies before it, and ask it once.

Samples of a question do not depend on each other and are asked together.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cardiolens.inference.engine.ask import FRAMES, Ask, NotAskedError
from cardiolens.inference.stream.loader import Row
from cardiolens.protocol.dialogue.chain import (
    SAMPLED,
    Chain,
    Choice,
    FrameRef,
    Sample,
    Samples,
    Stage,
    samples_to_lines,
)
from cardiolens.storage.schemas import ILLEGAL_SELECTION

Completion = Mapping[str, Any]
"""Columns of a completion, of this run or in the store."""

_NUMERICS = ("engine", "device", "attention_backend", "tensor_parallel")
_SUMMED = ("prompt_tokens", "cached_tokens", "output_tokens", "seconds")
_OF_LAST = ("text", "finish_reason", "option_logprobs", "status")


@dataclass(slots=True)
class Walk:
    """The chains of one study; a stage that several chains share is asked once."""

    known: Mapping[str, Completion]  # final completions of stages from earlier runs, by request key
    ask_step: Callable[[Ask, int], Awaitable[Row]]  # the int is the number of the stage
    keys_of: Callable[[Sequence[FrameRef]], Awaitable[tuple[str, ...]]]  # loads frames
    last: dict[str, Ask] = field(default_factory=dict)  # last request of each chain so far, by its key
    _asked: dict[str, asyncio.Future[Row]] = field(default_factory=dict)

    async def go(self, ask: Ask, chain: Chain) -> Row:
        """Continue after the stages with known completions, to the end or to the stage that failed.

        The result represents the chain: the last reply, and the tokens and seconds of all stages.
        """
        if isinstance(chain, Samples):
            return await self._ask_samples(ask, chain)
        completions: list[Completion] = []
        replies: list[str] = []
        while (coming := chain.next_request(replies)) is not None:
            self.last[ask.request_key] = await self._request(ask, coming)
            completions.append(await self._ask_once(self.last[ask.request_key], len(replies)))
            if completions[-1]["status"] != "ok":
                return _ended(completions, chain.most_stages)
            replies.append(completions[-1]["text"] or "")
        row = _ended(completions, chain.most_stages)
        if isinstance(chain, Choice) and (failure := chain.failure(replies)):
            row |= {"text": "", "status": ILLEGAL_SELECTION, "error": failure}
        return row

    async def _ask_samples(self, ask: Ask, chain: Samples) -> Row:
        """Ask for all samples at once; raise an error only after every sample has ended."""
        stages = [
            self._ask_once(await self._request(ask, coming), number)
            for number, coming in enumerate(chain.stages)
        ]
        results = await asyncio.gather(*stages, return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            raise min(errors, key=lambda error: isinstance(error, NotAskedError))  # which is never the cause
        return _gathered([result for result in results if not isinstance(result, BaseException)])

    async def _request(self, ask: Ask, coming: Stage) -> Ask:
        request = replace(ask, request_key=coming.key, text=coming.prompt, max_tokens=coming.max_tokens)
        if coming.frames is not None:
            request = replace(request, frame_keys=await self.keys_of(coming.frames))
        if coming.seed is not None:
            request = replace(request, seed=coming.seed, temperature=coming.temperature)
        if coming.asks_for_frames:
            request = replace(request, answer_type=FRAMES, option_keys=())
        return request if coming.constraint is None else replace(request, constraint=coming.constraint)

    async def _ask_once(self, ask: Ask, stage: int) -> Completion:
        if ask.request_key in self.known:
            return self.known[ask.request_key]
        if ask.request_key not in self._asked:
            self._asked[ask.request_key] = asyncio.ensure_future(self.ask_step(ask, stage))
        return await self._asked[ask.request_key]


def _summed(completions: Sequence[Completion]) -> Row:
    """Return the tokens and seconds of all completions, and the numerics of the last."""
    sums = {name: sum(completion.get(name) or 0 for completion in completions) for name in _SUMMED}
    return sums | {name: completions[-1].get(name) for name in _NUMERICS}


def _gathered(completions: Sequence[Completion]) -> Row:
    """Combine all samples of a question: refused if all were refused, failed if one failed."""
    row = _summed(completions)
    for number, completion in enumerate(completions, start=1):
        if completion["status"] == "engine_error":
            error = f"sample {number} of {len(completions)}: {completion.get('error')}"
            return row | {"status": "engine_error", "error": error}
    text = samples_to_lines(
        Sample(completion["text"] or "", completion["finish_reason"] or "", completion["status"])
        for completion in completions
    )
    refused = all(completion["status"] == "refused" for completion in completions)
    return row | {"text": text, "finish_reason": SAMPLED, "status": "refused" if refused else "ok"}


def _ended(completions: Sequence[Completion], n_stages: int) -> Row:
    """Combine the completions of a chain's stages into the completion of the chain."""
    last = completions[-1]
    row = _summed(completions) | {name: last[name] for name in _OF_LAST if name in last}
    if last["status"] != "ok":
        row["error"] = f"stage {len(completions)} of {n_stages}: {last.get('error') or 'refused'}"
    return row
