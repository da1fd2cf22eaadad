"""Chains: requests whose later stages hold the replies to earlier ones.

What a chain will ask is declared in the plan, with a mark where each earlier reply will stand. The request of
a stage and its key follow from the declaration and the earlier replies alone, so how far a chain is can be
read off the stored completions, and nothing else has to be kept.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.digest import digest_of
from cardiolens.tables import COMPLETIONS, FINAL, FRAME, STAGES

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # noncharacters of Unicode, which stand in no text of people
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
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
_FOLDER = "stages"


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage as planned: its prompt has marks where earlier replies will stand."""

    prompt: str
    max_tokens: int
    key: str


class Step(NamedTuple):
    """A stage of a chain whose request is known, and its final completion if there is one."""

    chain: str  # request_key of the chain
    stage: int
    request_key: str
    said: Mapping[str, object] | None  # columns of the completion


def mark(stage: int) -> str:
    """The mark that stands for the reply of a stage."""
    return f"{_OPEN}{stage}{_CLOSE}"


def prompt_of(stage: Stage, replies: Sequence[str]) -> str:
    """The prompt of a stage; of a reply nothing may be taken for the place of a frame, or for a mark."""
    clean = [_without_marks(reply) for reply in replies]
    return _MARK.sub(lambda found: clean[int(found[1])], stage.prompt)


def key_of(stage: Stage, replies: Sequence[str]) -> str:
    """The request key of a stage; equal for chains that ask the same after the same replies."""
    return digest_of([stage.key, *map(_without_marks, replies)]) if replies else stage.key


def stages_beside(part: Path) -> Path:
    """The file of stages that belongs to a part of `requests`; absent where it has no chains."""
    return part.parent / _FOLDER / part.name


def write_stages(part: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write the stages of the chains of a part, if it has any."""
    if rows:
        beside = stages_beside(part)
        tables.write_part(beside.parent, tables.from_rows(rows, STAGES), STAGES, beside.name)


def rows_of(request_key: str, stages: Iterable[Stage]) -> list[dict[str, object]]:
    """The stages of one chain as rows of the table."""
    return [
        {
            "request_key": request_key,
            "stage": number,
            "prompt": stage.prompt,
            "max_tokens": stage.max_tokens,
            "stage_key": stage.key,
        }
        for number, stage in enumerate(stages)
    ]


def read_stages(part: Path) -> dict[str, tuple[Stage, ...]]:
    """The chains of one part of `requests`, by request_key."""
    beside = stages_beside(part)
    return _chains(tables.read_part(beside, STAGES)) if beside.exists() else {}


def read_chains(requests: Path) -> dict[str, tuple[Stage, ...]]:
    """All chains of a folder of requests, by request_key; empty for a plan without any."""
    found: dict[str, tuple[Stage, ...]] = {}
    for part in tables.parts(requests):
        found |= read_stages(part)
    return found


def walk(chains: Mapping[str, Sequence[Stage]], completions: Path) -> list[Step]:
    """Every stage of chains whose request is known by now, stage by stage.

    Memory: the replies to these stages, and the keys of the completions.
    """
    if not chains:
        return []
    said = tables.read(completions, COMPLETIONS, (*_KEPT, "written_at"))
    said = said.filter(pc.is_in(said["status"], pa.array(FINAL))).sort_by("written_at")
    replies: dict[str, list[str]] = {chain: [] for chain in chains}
    steps: list[Step] = []
    stage = 0
    while replies:
        keys = {chain: key_of(chains[chain][stage], texts) for chain, texts in replies.items()}
        found = _first(said, set(keys.values()))
        steps += [Step(chain, stage, key, found.get(key)) for chain, key in keys.items()]
        stage += 1
        replies = {
            chain: [*texts, str(found[keys[chain]]["text"] or "")]
            for chain, texts in replies.items()
            if keys[chain] in found and found[keys[chain]]["status"] == "ok" and stage < len(chains[chain])
        }
    return steps


def known_steps(parts: Sequence[str], completions: Path) -> dict[str, Mapping[str, object]]:
    """The final completions of stages of the chains of some parts of `requests`, by request_key."""
    chains: dict[str, tuple[Stage, ...]] = {}
    for part in parts:
        chains |= read_stages(Path(part))
    return {step.request_key: step.said for step in walk(chains, completions) if step.said is not None}


def _first(said: pa.Table, keys: set[str]) -> dict[str, dict[str, object]]:
    """The earliest final completion of each key."""
    own = said.filter(pc.is_in(said["request_key"], pa.array(sorted(keys), pa.string())))
    return {row["request_key"]: row for row in reversed(own.select(_KEPT).to_pylist())}


def _chains(rows: pa.Table) -> dict[str, tuple[Stage, ...]]:
    ordered = rows.sort_by([("request_key", "ascending"), ("stage", "ascending")])
    found: dict[str, list[Stage]] = {}
    for row in ordered.to_pylist():
        own = found.setdefault(row["request_key"], [])
        if row["stage"] == len(own):  # arms may declare the same chain, which is asked once
            own.append(Stage(row["prompt"], row["max_tokens"], row["stage_key"]))
    return {chain: tuple(stages) for chain, stages in found.items()}


def _without_marks(reply: str) -> str:
    return reply.replace(FRAME, "").replace(_OPEN, "").replace(_CLOSE, "")
