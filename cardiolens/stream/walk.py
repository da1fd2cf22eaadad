"""The walk along a chain: each stage is rendered and keyed from the replies before it, and asked once."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cardiolens.engine.ask import Ask, ErrorKind
from cardiolens.record.chain import Stage, key_of, prompt_of
from cardiolens.stream.messages import CompletionRow
from cardiolens.tasks.legal import FREE

Settled = tuple[CompletionRow, ErrorKind | None]
"""A completion, and the kind of its error if it failed."""

Stages = tuple[Stage, ...]
Said = Mapping[str, Any]
"""Columns of a completion in the store."""

_SUMMED = ("prompt_tokens", "cached_tokens", "output_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Walk:
    """The chains of one study; a stage that several of them share is asked once."""

    known: Mapping[str, Said]  # final completions of stages, from before
    ask_step: Callable[[Ask, int], Awaitable[Settled]]  # an int: its stage
    _asked: dict[str, asyncio.Future[Settled]] = field(default_factory=dict)

    async def go(self, ask: Ask, stages: Sequence[Stage]) -> Settled:
        """Go on from the stages whose completions are known, to the end or to the stage that failed.

        What comes out stands for the chain: the last reply, and the tokens and seconds of all stages.
        """
        said: list[Said] = []
        replies: list[str] = []
        for number, stage in enumerate(stages):
            last = number == len(stages) - 1
            row, error_kind = await self._said(
                replace(
                    ask,
                    request_key=key_of(stage, replies),
                    text=prompt_of(stage, replies),
                    max_tokens=stage.max_tokens,
                    constraint=ask.constraint if last else FREE,
                ),
                number,
            )
            said.append(row)
            if row["status"] != "ok":
                return _ended(said, len(stages)), error_kind
            replies.append(row["text"] or "")
        return _ended(said, len(stages)), None

    async def _said(self, ask: Ask, stage: int) -> tuple[Said, ErrorKind | None]:
        if ask.request_key in self.known:
            return self.known[ask.request_key], None
        if ask.request_key not in self._asked:
            self._asked[ask.request_key] = asyncio.ensure_future(self.ask_step(ask, stage))
        return await self._asked[ask.request_key]


def _ended(said: Sequence[Said], n_stages: int) -> CompletionRow:
    """The completion of a chain from those of its stages."""
    last = said[-1]
    row: Any = {name: sum(one.get(name) or 0 for one in said) for name in _SUMMED}
    row |= {
        name: last[name] for name in ("text", "finish_reason", "option_logprobs", "status") if name in last
    }
    if last["status"] != "ok":
        row["error"] = f"stage {len(said)} of {n_stages}: {last.get('error') or 'refused'}"
    ended: CompletionRow = row
    return ended
