"""What an audit needs of a run: its judged choices, their replies as a person sees them, and a sample."""

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.arms import arms
from cardiolens.config.base import Spec
from cardiolens.protocol.dialogue.chain import SAMPLED
from cardiolens.show.notebook.run import FinishedRun

SAMPLE = "audit_sample.json"
YOUNG = frozenset({"answer_phrase"})  # rules of which least is known
_LEAST = 5  # replies of a stratum, where it has as many
_MORE = 2.0  # times as many of young rules, and of what was not read
_VERDICT = ("arm_id", "qa_id", "request_key", "status", "parse_status", "rule", "parsed", "gold", "correct")
Place = tuple[str, str]  # arm_id and qa_id
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplyView:
    """One reply with its question, options in the order in which the model saw them."""

    question: str
    options: tuple[tuple[str, str], ...]  # (original key, text) in the order displayed
    several: bool
    reply: str
    cut: bool

    @property
    def key_of(self) -> dict[str, str]:
        """The option that each displayed letter stands for."""
        keys = [key for key, _ in self.options]
        return dict(zip(sorted(keys), keys, strict=True))


class Sampled(Spec):
    """One reply of the sample, by the place of its verdict, and its stratum."""

    model: str
    arm_id: str
    qa_id: str
    stratum: str  # status and rule when the sample was drawn

    @property
    def place(self) -> Place:
        return self.arm_id, self.qa_id


class Sample(Spec):
    """Replies in the order in which they are read, and the sizes of their strata."""

    schema_: Literal["audit-sample-1"] = Field(alias="schema")
    replies: tuple[Sampled, ...]
    sizes: Mapping[str, Mapping[str, int]]  # model -> stratum -> replies in the run


def judged_choices(run: FinishedRun) -> list[dict[str, Any]]:
    """Return the judged replies to choice questions, each with its model.

    Replies of several samples are left out: what is judged of them is a vote.
    """
    model_of = {arm.arm_id: arm.model.name for arm in arms(run.configuration)}
    verdicts, completions = run.verdicts, run.completions
    is_choice = pc.and_(pc.equal(verdicts["channel"], "answer"), pc.equal(verdicts["status"], "judged"))
    sampled = completions.filter(pc.equal(completions["finish_reason"], SAMPLED))["request_key"]
    votes = set(sampled.to_pylist())
    rows = verdicts.filter(is_choice).select(_VERDICT).to_pylist()
    chosen = [row | {"model": model_of[row["arm_id"]]} for row in rows if row["request_key"] not in votes]
    if not chosen:
        raise InputError(f"{run.folder}: holds no judged reply to a choice question; nothing can be misread")
    return chosen


def shown_replies(run: FinishedRun, replies: Iterable[Place]) -> dict[Place, ReplyView]:
    """Return replies by their places, with their questions and displayed options."""
    places = set(replies)
    questions = {row["qa_id"]: row for row in run.questions.to_pylist()}
    qa_ids = pa.array(sorted({qa_id for _, qa_id in places}), pa.string())
    requests = run.requests.filter(pc.is_in(run.requests["qa_id"], value_set=qa_ids))
    texts = {row["request_key"]: row for row in run.completions.to_pylist()}
    views: dict[Place, ReplyView] = {}
    for row in requests.select(["arm_id", "qa_id", "request_key", "option_keys"]).to_pylist():
        place = row["arm_id"], row["qa_id"]
        if place in places and row["request_key"] in texts:
            views[place] = _view(questions[row["qa_id"]], row["option_keys"], texts[row["request_key"]])
    if absent := places - views.keys():
        raise InputError(
            f"{run.folder}: {len(absent)} sampled replies are not in its store; put the store back"
        )
    return views


def _view(question: Row, displayed: list[str] | None, completion: Row) -> ReplyView:
    texts = {option["key"]: option["text"] for option in question["options"]}
    return ReplyView(
        question=question["question"],
        options=tuple((key, texts[key]) for key in displayed or texts),
        several=question["answer_type"] == "multi",
        reply=completion["text"] or "",
        cut=completion["finish_reason"] == "length",
    )


def draw(verdicts: Sequence[Row], per_model: int, seed: int) -> Sample:
    """Draw about `per_model` replies of each model from judged verdicts, which name their model."""
    dice = random.Random(seed)
    strata: dict[str, dict[str, list[Row]]] = {}
    for row in verdicts:
        name = f"{row['parse_status']}: {row['rule']}"
        strata.setdefault(row["model"], {}).setdefault(name, []).append(row)
    sizes = {model: {name: len(rows) for name, rows in by_name.items()} for model, by_name in strata.items()}
    replies: list[Sampled] = []
    for model, by_name in strata.items():
        numbers = allocate(sizes[model], per_model)
        for name, rows in by_name.items():
            for row in dice.sample(rows, numbers[name]):
                replies.append(Sampled(model=model, arm_id=row["arm_id"], qa_id=row["qa_id"], stratum=name))
    dice.shuffle(replies)  # whose reply is read next, and by which rule, says nothing
    return Sample(schema="audit-sample-1", replies=tuple(replies), sizes=sizes)


def allocate(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Return how many replies of each stratum are read: by size, a few at least, more of young rules."""
    weights = {name: size * (_MORE if _is_young(name) else 1.0) for name, size in sizes.items()}
    rest = max(0, total - _LEAST * len(sizes)) / sum(weights.values())
    return {name: min(size, _LEAST + math.ceil(rest * weights[name])) for name, size in sizes.items()}


def _is_young(stratum: str) -> bool:
    status, _, rule = stratum.partition(": ")
    return status != "ok" or rule in YOUNG


def keep(path: Path, sample: Sample) -> None:
    """Write a sample; later audits of the run read the same replies."""
    disk.write_text(path, json.dumps(sample.model_dump(mode="json", by_alias=True), indent=1) + "\n")


def read_sample(path: Path) -> Sample | None:
    """Read the sample of a run; None if none was drawn yet."""
    if not path.is_file():
        return None
    try:
        return Sample.model_validate(read_json(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is no sample of an audit ({error}); delete it and run again") from error
