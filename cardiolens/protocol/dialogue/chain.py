"""Chains: requests in stages, where later prompts contain the replies to earlier ones.

The plan declares a chain, with a mark in place of each earlier reply. The request of a stage and its key
follow from the declaration and the earlier replies alone, so the stored completions tell how far a chain is;
no other state is kept. There are three kinds: `Steps`, fixed but for the replies; `Choice`, whose frames
depend on the replies (`frame_requests`); and `Samples`, independent replies to one question.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of
from cardiolens.protocol.dialogue.frame_requests import Choice, Offer, OfferedFrame
from cardiolens.protocol.dialogue.pending import PendingRequest, fill, without_marks
from cardiolens.protocol.tasks.legal import FREE
from cardiolens.storage import tables
from cardiolens.storage.schemas import CHOICES, COMPLETIONS, FINAL, OFFERS, STAGES

_COMPLETION = (
    "request_key",
    "status",
    "text",
    "finish_reason",
    "option_logprobs",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "seconds",
)
_OF_STAGE = ("prompt", "max_tokens", "stage_key", "seed", "temperature")
_FOLDER = "stages"
_CHOICES = "choices"
_OFFERS = "offers"
CHOICE_FIELDS = tuple(name for name in CHOICES.names if name not in ("request_key", "offer_key"))


@dataclass(frozen=True, slots=True)
class Stage:
    """One planned stage; its prompt has marks in place of earlier replies."""

    prompt: str
    max_tokens: int
    key: str
    seed: int | None = None  # of a sample
    temperature: float | None = None  # of a sample


@dataclass(frozen=True, slots=True)
class Steps:
    """A chain whose stages are known but for the replies in them; all show the same frames."""

    stages: tuple[Stage, ...]

    @property
    def most_stages(self) -> int:
        return len(self.stages)

    def next_request(self, replies: Sequence[str]) -> PendingRequest | None:
        """The next request; None at the end of the chain."""
        if len(replies) == len(self.stages):
            return None
        stage = self.stages[len(replies)]
        last = stage is self.stages[-1]
        key, prompt = key_of(stage, replies), prompt_of(stage, replies)
        return PendingRequest(key, prompt, stage.max_tokens, constraint=None if last else FREE)

    def failure(self, replies: Sequence[str]) -> str | None:
        """None: the last reply is the answer."""
        return None


@dataclass(frozen=True, slots=True)
class Samples:
    """Several replies to one request, each drawn with a seed of its own; none waits for another."""

    stages: tuple[Stage, ...]

    @property
    def requests(self) -> tuple[PendingRequest, ...]:
        """The requests of all samples."""
        return tuple(
            PendingRequest(
                stage.key, stage.prompt, stage.max_tokens, seed=stage.seed, temperature=stage.temperature
            )
            for stage in self.stages
        )


Chain = Steps | Choice | Samples


class Step(NamedTuple):
    """A stage of a chain whose request is known, and its final completion if there is one."""

    chain: str  # request_key of the chain
    stage: int
    request_key: str
    completion: Mapping[str, object] | None  # columns of the completion
    request: PendingRequest
    replies: tuple[str, ...]  # of the stages before it


def prompt_of(stage: Stage, replies: Sequence[str]) -> str:
    """The prompt of a stage; characters of frames and marks are removed from the replies."""
    return fill(stage.prompt, [without_marks(reply) for reply in replies])


def key_of(stage: Stage, replies: Sequence[str]) -> str:
    """The request key of a stage; equal for chains that ask the same after the same replies."""
    return digest_of([stage.key, *map(without_marks, replies)]) if replies else stage.key


def write_chains(
    part: Path,
    stages: Sequence[dict[str, object]],
    choices: Sequence[dict[str, object]],
    offers: Sequence[dict[str, object]],
) -> None:
    """Write the chains of a part of `requests`, if any, to folders next to it."""
    for name, rows, schema in (
        (_FOLDER, stages, STAGES),
        (_OFFERS, offers, OFFERS),
        (_CHOICES, choices, CHOICES),
    ):
        if rows:
            tables.write_part(part.parent / name, tables.from_rows(rows, schema), schema, part.name)


def rows_of(request_key: str, stages: Iterable[Stage]) -> list[dict[str, object]]:
    """The stages of one chain as rows of the table."""
    return [
        {
            "request_key": request_key,
            "stage": number,
            "prompt": stage.prompt,
            "max_tokens": stage.max_tokens,
            "stage_key": stage.key,
            "seed": stage.seed,
            "temperature": stage.temperature,
        }
        for number, stage in enumerate(stages)
    ]


def chain_from_stages(stages: Sequence[Stage]) -> Steps | Samples:
    """The chain of these stages; those of samples have a seed."""
    return Steps(tuple(stages)) if stages[0].seed is None else Samples(tuple(stages))


def row_of(request_key: str, choice: Choice) -> dict[str, object]:
    """A choice as a row of the table."""
    own = {name: getattr(choice, name) for name in CHOICE_FIELDS}
    return {"request_key": request_key, "offer_key": choice.offer.key, **own}


def choice_of(row: Mapping[str, Any], offers: Mapping[str, Offer]) -> Choice:
    """A choice from a row of the table, or from a mapping with its columns."""
    return Choice(offers[row["offer_key"]], **{name: row[name] for name in CHOICE_FIELDS})


def offer_row(offer: Offer) -> dict[str, object]:
    """An offer as a row of the table."""
    return {"offer_key": offer.key, "frames": [frame._asdict() for frame in offer.frames]}


def offers_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Offer]:
    """Offers by their keys, from rows of the table."""
    return {
        row["offer_key"]: Offer(row["offer_key"], tuple(OfferedFrame(**frame) for frame in row["frames"]))
        for row in rows
    }


def read_part_chains(part: Path) -> dict[str, Chain]:
    """The chains of one part of `requests`, by request_key."""
    stages, choices, offers = (part.parent / name / part.name for name in (_FOLDER, _CHOICES, _OFFERS))
    chains: dict[str, Chain] = {}
    if stages.exists():
        chains |= _chains_of_stages(tables.read_part(stages, STAGES))
    if choices.exists():
        rows = tables.read_part(choices, CHOICES).to_pylist()
        offer_by_key = offers_of(tables.read_part(offers, OFFERS).to_pylist())
        chains |= {row["request_key"]: choice_of(row, offer_by_key) for row in rows}
    return chains


def read_chains(requests: Path) -> dict[str, Chain]:
    """All chains of a folder of requests, by request_key; empty for a plan without any."""
    chains: dict[str, Chain] = {}
    for part in tables.parts(requests):
        chains |= read_part_chains(part)
    return chains


def walk(chains: Mapping[str, Chain], completions: Path) -> list[Step]:
    """All steps of chains whose requests are known so far, stage by stage.

    Memory: the replies to these stages, and the keys of the completions.
    """
    if not chains:
        return []
    rows = tables.read(completions, COMPLETIONS, (*_COMPLETION, "written_at"))
    rows = rows.filter(pc.is_in(rows["status"], pa.array(FINAL))).sort_by("written_at")
    in_turn = {key: chain for key, chain in chains.items() if not isinstance(chain, Samples)}
    replies: dict[str, tuple[str, ...]] = dict.fromkeys(in_turn, ())
    steps = _sample_steps(chains, rows)
    while replies:
        upcoming = {key: (in_turn[key].next_request(texts), texts) for key, texts in replies.items()}
        requests = {
            key: (request, texts) for key, (request, texts) in upcoming.items() if request is not None
        }
        by_key = _earliest(rows, {request.request_key for request, _ in requests.values()})
        replies = {}
        for key, (request, texts) in requests.items():
            row = by_key.get(request.request_key)
            steps.append(Step(key, len(texts), request.request_key, row, request, texts))
            if row is not None and row["status"] == "ok":
                replies[key] = (*texts, str(row["text"] or ""))
    return steps


def _sample_steps(chains: Mapping[str, Chain], rows: pa.Table) -> list[Step]:
    """The steps of all `Samples`, whose requests are known from the plan."""
    samples = [
        (key, number, request)
        for key, chain in chains.items()
        if isinstance(chain, Samples)
        for number, request in enumerate(chain.requests)
    ]
    by_key = _earliest(rows, {request.request_key for _, _, request in samples})
    return [
        Step(key, number, request.request_key, by_key.get(request.request_key), request, ())
        for key, number, request in samples
    ]


def known_steps(parts: Sequence[str], completions: Path) -> dict[str, Mapping[str, object]]:
    """The final completions of stages of the chains of some parts of `requests`, by request_key."""
    chains: dict[str, Chain] = {}
    for part in parts:
        chains |= read_part_chains(Path(part))
    return {
        step.request_key: step.completion for step in walk(chains, completions) if step.completion is not None
    }


def _earliest(rows: pa.Table, keys: set[str]) -> dict[str, dict[str, object]]:
    """The earliest final completion of each key."""
    own = rows.filter(pc.is_in(rows["request_key"], pa.array(sorted(keys), pa.string())))
    return {row["request_key"]: row for row in reversed(own.select(_COMPLETION).to_pylist())}


def _chains_of_stages(rows: pa.Table) -> dict[str, Steps | Samples]:
    in_order = rows.sort_by([("request_key", "ascending"), ("stage", "ascending")])
    by_chain: dict[str, list[Stage]] = {}
    for row in in_order.to_pylist():
        own = by_chain.setdefault(row["request_key"], [])
        if row["stage"] == len(own):  # arms may declare the same chain, which is asked once
            own.append(Stage(*(row[name] for name in _OF_STAGE)))
    return {chain: chain_from_stages(stages) for chain, stages in by_chain.items()}
