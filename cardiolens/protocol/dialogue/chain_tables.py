"""Chains on disk: their tables beside `requests`, how far each has come, and the table `seen`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.protocol.dialogue.chain import Chain, Choice, Offer, OfferedFrame, Samples, Stage, Steps
from cardiolens.storage import tables
from cardiolens.storage.schemas import CHOICES, COMPLETIONS, FINAL, OFFERS, SEEN, STAGES

_COMPLETION = (
    *("request_key", "status", "text", "finish_reason", "option_logprobs"),
    *("prompt_tokens", "cached_tokens", "output_tokens", "seconds"),
)
_OF_STAGE = ("prompt", "max_tokens", "stage_key", "seed", "temperature")  # the first fields of a Stage
_OF_CHOICE = tuple(name for name in CHOICES.names if name not in ("request_key", "offer_key"))
_FOLDERS = {"stages": STAGES, "offers": OFFERS, "choices": CHOICES}


def write_chains(part: Path, chains: Mapping[str, Chain]) -> None:
    """Write the chains of a part of `requests`, by request_key, to folders next to it."""
    choices = {key: chain for key, chain in chains.items() if isinstance(chain, Choice)}
    offers = {chain.offer.key: chain.offer for chain in choices.values()}
    rows: dict[str, list[dict[str, object]]] = {
        "stages": [
            {"request_key": key, "stage": number, **dict(zip(_OF_STAGE, stage, strict=False))}
            for key, chain in chains.items()
            if not isinstance(chain, Choice)
            for number, stage in enumerate(chain.stages)
        ],
        "offers": [
            {"offer_key": key, "frames": [frame._asdict() for frame in offer.frames]}
            for key, offer in offers.items()
        ],
        "choices": [
            {"request_key": key, "offer_key": chain.offer.key}
            | {name: getattr(chain, name) for name in _OF_CHOICE}
            for key, chain in choices.items()
        ],
    }
    for name, schema in _FOLDERS.items():
        if rows[name]:
            tables.write_part(part.parent / name, tables.from_rows(rows[name], schema), schema, part.name)


def read_part_chains(part: Path) -> dict[str, Chain]:
    """The chains of one part of `requests`, by request_key."""
    rows = {
        name: tables.read_part(path, schema).to_pylist()
        for name, schema in _FOLDERS.items()
        if (path := part.parent / name / part.name).exists()
    }
    stages: dict[str, list[Stage]] = {}
    for row in rows.get("stages", ()):  # as written: stage by stage
        stages.setdefault(row["request_key"], []).append(Stage(*(row[name] for name in _OF_STAGE)))
    chains: dict[str, Chain] = {
        key: (Steps if own_stages[0].seed is None else Samples)(tuple(own_stages))
        for key, own_stages in stages.items()
    }
    offers = {
        row["offer_key"]: Offer(row["offer_key"], tuple(OfferedFrame(**frame) for frame in row["frames"]))
        for row in rows.get("offers", ())
    }
    for row in rows.get("choices", ()):
        own_fields: dict[str, Any] = {name: row[name] for name in _OF_CHOICE}
        chains[row["request_key"]] = Choice(offers[row["offer_key"]], **own_fields)
    return chains


def read_chains(requests: Path) -> dict[str, Chain]:
    """All chains of a folder of requests, by request_key; empty for a plan without any."""
    return _chains_of(tables.parts(requests))


def _chains_of(parts: Sequence[Path]) -> dict[str, Chain]:
    return {key: chain for part in parts for key, chain in read_part_chains(part).items()}


class Step(NamedTuple):
    """A stage of a chain with a known request, and its final completion if there is one."""

    chain: str  # request_key of the chain
    stage: int
    request_key: str
    completion: Mapping[str, object] | None  # columns of the completion
    request: Stage
    replies: tuple[str, ...]  # of the stages before it


def walk(chains: Mapping[str, Chain], completions: Path) -> list[Step]:
    """All steps of chains with requests known so far, stage by stage.

    Memory: the replies to these stages, and the keys of the completions.
    """
    if not chains:
        return []
    rows = tables.read(completions, COMPLETIONS, (*_COMPLETION, "written_at"))
    rows = rows.filter(pc.is_in(rows["status"], pa.array(FINAL))).sort_by("written_at")
    replies: dict[str, tuple[str, ...]] = dict.fromkeys(chains, ())
    steps: list[Step] = []
    while replies:
        coming = {key: _coming(chains[key], texts) for key, texts in replies.items()}
        by_key = _earliest(rows, {stage.key for stages in coming.values() for stage in stages})
        known = [
            Step(key, number, stage.key, by_key.get(stage.key), stage, replies[key])
            for key, stages in coming.items()
            for number, stage in enumerate(stages, start=len(replies[key]))
        ]
        steps += known
        replies = {
            step.chain: (*step.replies, str(step.completion["text"] or ""))
            for step in known
            if step.completion is not None and step.completion["status"] == "ok"
        }
    return steps


def _coming(chain: Chain, replies: Sequence[str]) -> Sequence[Stage]:
    """The stages that can be asked after these replies: all samples at once, of other chains the next."""
    if isinstance(chain, Samples):
        return () if replies else chain.stages
    stage = chain.next_request(replies)
    return () if stage is None else (stage,)


def known_steps(parts: Sequence[str], completions: Path) -> dict[str, Mapping[str, object]]:
    """The final completions of stages of the chains of some parts of `requests`, by request_key."""
    steps = walk(_chains_of([Path(part) for part in parts]), completions)
    return {step.request_key: step.completion for step in steps if step.completion is not None}


def _earliest(rows: pa.Table, keys: set[str]) -> dict[str, dict[str, object]]:
    """The earliest final completion of each key."""
    rows = rows.filter(pc.is_in(rows["request_key"], pa.array(sorted(keys), pa.string())))
    return {row["request_key"]: row for row in reversed(rows.select(_COMPLETION).to_pylist())}


def seen_table(chains: Mapping[str, Chain], steps: Sequence[Step]) -> pa.Table:
    """The stages with known requests, by chain and in order; those of samples are left out."""
    in_turn = [step for step in steps if not isinstance(chains[step.chain], Samples)]
    in_order = sorted(in_turn, key=lambda step: (step.chain, step.stage))
    return tables.from_rows([_row(chains[step.chain], step) for step in in_order], SEEN)


def _row(chain: Chain, step: Step) -> dict[str, object]:
    request, completion = step.request, step.completion
    reply = None if completion is None else str(completion["text"] or "")
    return {
        "request_key": step.chain,
        "stage": step.stage,
        "step_key": step.request_key,
        "frames": None if request.frames is None else [frame._asdict() for frame in request.frames],
        "prompt": request.prompt,
        "reply": reply,
        "not_shown": _not_shown(chain, step, reply),
        "status": None if completion is None else completion["status"],
    }


def _not_shown(chain: Chain, step: Step, reply: str | None) -> int | None:
    if reply is None or not isinstance(chain, Choice) or not step.request.asks_for_frames:
        return None
    return chain.after((*step.replies, reply)).not_shown[-1]
