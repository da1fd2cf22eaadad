"""Chains: requests whose later stages hold the replies to earlier ones.

What a chain will ask is declared in the plan, with a mark where each earlier reply will stand. The request of
a stage and its key follow from the declaration and the earlier replies alone, so how far a chain is can be
read off the stored completions, and nothing else has to be kept. There are three kinds: steps, known but for
the replies; choices (`frame_requests`), whose frames depend on them; and samples, which depend on nothing and
stand together for one question.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of
from cardiolens.protocol.dialogue.frame_requests import Choice, Offer, Offered
from cardiolens.protocol.dialogue.pending import Coming, filled, without_marks
from cardiolens.protocol.tasks.legal import FREE
from cardiolens.storage import tables
from cardiolens.storage.tables import CHOICES, COMPLETIONS, FINAL, OFFERS, STAGES

_KEPT = (
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
CHOSEN = tuple(name for name in CHOICES.names if name not in ("request_key", "offer_key"))


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage as planned: its prompt has marks where earlier replies will stand."""

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

    def coming(self, replies: Sequence[str]) -> Coming | None:
        """The next request; None where the chain is at its end."""
        if len(replies) == len(self.stages):
            return None
        stage = self.stages[len(replies)]
        last = stage is self.stages[-1]
        request = key_of(stage, replies), prompt_of(stage, replies), stage.max_tokens
        return Coming(*request, constraint=None if last else FREE)

    def failure(self, replies: Sequence[str]) -> str | None:
        """Nothing: the last reply is the answer."""
        return None


@dataclass(frozen=True, slots=True)
class Samples:
    """Several replies to one request, each drawn with a seed of its own; none waits for another."""

    stages: tuple[Stage, ...]

    @property
    def all_coming(self) -> tuple[Coming, ...]:
        """The requests of all samples."""
        return tuple(
            Coming(stage.key, stage.prompt, stage.max_tokens, seed=stage.seed, temperature=stage.temperature)
            for stage in self.stages
        )


Chain = Steps | Choice | Samples


class Step(NamedTuple):
    """A stage of a chain whose request is known, and its final completion if there is one."""

    chain: str  # request_key of the chain
    stage: int
    request_key: str
    said: Mapping[str, object] | None  # columns of the completion
    coming: Coming
    replies: tuple[str, ...]  # of the stages before it


def prompt_of(stage: Stage, replies: Sequence[str]) -> str:
    """The prompt of a stage; of a reply nothing may be taken for the place of a frame, or for a mark."""
    return filled(stage.prompt, [without_marks(reply) for reply in replies])


def key_of(stage: Stage, replies: Sequence[str]) -> str:
    """The request key of a stage; equal for chains that ask the same after the same replies."""
    return digest_of([stage.key, *map(without_marks, replies)]) if replies else stage.key


def write_chains(
    part: Path,
    stages: Sequence[dict[str, object]],
    choices: Sequence[dict[str, object]],
    offers: Sequence[dict[str, object]],
) -> None:
    """Write the chains of a part of `requests` beside it, if it has any."""
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


def staged(stages: Sequence[Stage]) -> Steps | Samples:
    """The chain of these stages; those of samples have a seed."""
    return Steps(tuple(stages)) if stages[0].seed is None else Samples(tuple(stages))


def row_of(request_key: str, choice: Choice) -> dict[str, object]:
    """A choice as a row of the table."""
    fields = {name: getattr(choice, name) for name in CHOSEN}
    return {"request_key": request_key, "offer_key": choice.offer.key, **fields}


def choice_of(row: Mapping[str, Any], offers: Mapping[str, Offer]) -> Choice:
    """A choice from a row of the table, or of what was made from one."""
    return Choice(offers[row["offer_key"]], **{name: row[name] for name in CHOSEN})


def offer_row(offer: Offer) -> dict[str, object]:
    """An offer as a row of the table."""
    return {"offer_key": offer.key, "frames": [frame._asdict() for frame in offer.frames]}


def offers_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Offer]:
    """Offers by their keys, from rows of the table."""
    return {
        row["offer_key"]: Offer(row["offer_key"], tuple(Offered(**frame) for frame in row["frames"]))
        for row in rows
    }


def read_part_chains(part: Path) -> dict[str, Chain]:
    """The chains of one part of `requests`, by request_key."""
    stages, choices, offers = (part.parent / name / part.name for name in (_FOLDER, _CHOICES, _OFFERS))
    chain_of: dict[str, Chain] = {}
    if stages.exists():
        chain_of |= _staged(tables.read_part(stages, STAGES))
    if choices.exists():
        rows = tables.read_part(choices, CHOICES).to_pylist()
        offered = offers_of(tables.read_part(offers, OFFERS).to_pylist())
        chain_of |= {row["request_key"]: choice_of(row, offered) for row in rows}
    return chain_of


def read_chains(requests: Path) -> dict[str, Chain]:
    """All chains of a folder of requests, by request_key; empty for a plan without any."""
    chain_of: dict[str, Chain] = {}
    for part in tables.parts(requests):
        chain_of |= read_part_chains(part)
    return chain_of


def walk(chains: Mapping[str, Chain], completions: Path) -> list[Step]:
    """Every stage of chains whose request is known by now, stage by stage.

    Memory: the replies to these stages, and the keys of the completions.
    """
    if not chains:
        return []
    stored = tables.read(completions, COMPLETIONS, (*_KEPT, "written_at"))
    stored = stored.filter(pc.is_in(stored["status"], pa.array(FINAL))).sort_by("written_at")
    in_turn = {chain: one for chain, one in chains.items() if not isinstance(one, Samples)}
    replies: dict[str, tuple[str, ...]] = dict.fromkeys(in_turn, ())
    steps = _drawn(chains, stored)
    while replies:
        at = {chain: (in_turn[chain].coming(texts), texts) for chain, texts in replies.items()}
        going = {chain: (coming, texts) for chain, (coming, texts) in at.items() if coming is not None}
        first_rows = _first(stored, {coming.request_key for coming, _ in going.values()})
        replies = {}
        for chain, (coming, texts) in going.items():
            row = first_rows.get(coming.request_key)
            steps.append(Step(chain, len(texts), coming.request_key, row, coming, texts))
            if row is not None and row["status"] == "ok":
                replies[chain] = (*texts, str(row["text"] or ""))
    return steps


def _drawn(chains: Mapping[str, Chain], completions: pa.Table) -> list[Step]:
    """Every sample of chains that are samples: all requests are known from the plan."""
    sample_rows = [
        (chain, number, coming)
        for chain, one in chains.items()
        if isinstance(one, Samples)
        for number, coming in enumerate(one.all_coming)
    ]
    first_rows = _first(completions, {coming.request_key for _, _, coming in sample_rows})
    return [
        Step(chain, number, coming.request_key, first_rows.get(coming.request_key), coming, ())
        for chain, number, coming in sample_rows
    ]


def known_steps(parts: Sequence[str], completions: Path) -> dict[str, Mapping[str, object]]:
    """The final completions of stages of the chains of some parts of `requests`, by request_key."""
    chains: dict[str, Chain] = {}
    for part in parts:
        chains |= read_part_chains(Path(part))
    return {step.request_key: step.said for step in walk(chains, completions) if step.said is not None}


def _first(completions: pa.Table, keys: set[str]) -> dict[str, dict[str, object]]:
    """The earliest final completion of each key."""
    matching = completions.filter(pc.is_in(completions["request_key"], pa.array(sorted(keys), pa.string())))
    return {row["request_key"]: row for row in reversed(matching.select(_KEPT).to_pylist())}


def _staged(rows: pa.Table) -> dict[str, Steps | Samples]:
    ordered = rows.sort_by([("request_key", "ascending"), ("stage", "ascending")])
    stages_of: dict[str, list[Stage]] = {}
    for row in ordered.to_pylist():
        own = stages_of.setdefault(row["request_key"], [])
        if row["stage"] == len(own):  # arms may declare the same chain, which is asked once
            own.append(Stage(*(row[name] for name in _OF_STAGE)))
    return {chain: staged(stages) for chain, stages in stages_of.items()}
