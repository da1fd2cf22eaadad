"""How replies were read: shares by model and arm, bounds of scores, and scores by the readings of others."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.phases import heard_by
from cardiolens.config import sweep_factors
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.dialogue.chain import SAMPLED
from cardiolens.protocol.replies.peer_readings import PEER_READINGS
from cardiolens.protocol.tasks.legal import letters_of
from cardiolens.score.run_results.stored_replies import align_completions, questions_of
from cardiolens.score.statistics.counting import values_of
from cardiolens.score.statistics.factors import ArmFactors, arm_factors, headlines
from cardiolens.score.statistics.items import Answers, ArmAnswers
from cardiolens.score.statistics.scores import PREFIX, score
from cardiolens.score.statistics.statistic import Row, Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage.places import Run, Store
from cardiolens.storage.schemas import ASKED_BACK, COMPLETIONS, ILLEGAL_SELECTION, NO_ANSWER

SHARES, PEERS = "how replies were read", "readings of others"  # names of tables
READINGS = ("at_once", "asked_back", "no_answer", "unread", "refused", "cut", ILLEGAL_SELECTION)
STRICT = "strict"  # the reading of this run, second turns among them
TIERS = ("tier:1", "tier:3")  # of choice questions
_READING = {
    **{"ok": "at_once", ASKED_BACK: "asked_back", NO_ANSWER: "no_answer", "parse_error": "unread"},
    **{"inconsistent": "at_once", "contradicted": "unread", "refusal": "refused", "truncated": "cut"},
    ILLEGAL_SELECTION: ILLEGAL_SELECTION,
}
_OF_REPLY = ("request_key", "status", "text", "finish_reason", "written_at")
_Scores = Mapping[tuple[str, str], float]  # by model or arm, and tier


def reading_shares(
    endings: Sequence[Row], answers: ArmAnswers, arms: Sequence[ArmFactors], min_n: int
) -> list[Row]:
    """Percentages of the replies, without reports, by model and by arm, and bounds of an arm's tier scores.

    `once`: the score if every answer that was asked back is wrong; `high`: if every reply that was not read
    is right. The score itself counts what was not read as wrong. Without such replies there are no bounds.
    `endings` are numbers of verdicts by status (`status_counts`).
    """
    counts = {arm.arm_id: Counter[str]() for arm in arms}
    for row in endings:
        is_counted = row["status"] == "judged" and row["channel"] not in ("fields", "text")
        if is_counted and row["arm_id"] in counts:
            counts[row["arm_id"]][_READING[row["parse_status"]]] += row["n"]
    rows: list[Row] = []
    for model in dict.fromkeys(arm.model for arm in arms):
        of_model = sum((counts[arm.arm_id] for arm in arms if arm.model == model), Counter[str]())
        rows += _shares(model, None, of_model)
    for arm in arms:
        own = counts[arm.arm_id]
        bounds = _bounds(answers.judged(arm.arm_id), min_n) if own["asked_back"] or own["unread"] else {}
        rows += [row | bounds for row in _shares(arm.model, arm.arm_id, own)]
    return rows


def _shares(model: str, arm_id: str | None, counts: Counter[str]) -> Iterator[Row]:
    """One row, none without replies."""
    if n_replies := counts.total():
        row: Row = {"model": model, "arm_id": arm_id, "n": n_replies}
        yield row | {name: 100 * counts[name] / n_replies for name in READINGS}


def _bounds(answers: Answers, min_n: int) -> Row:
    """The tier scores of one arm if what was not read at once counted otherwise."""
    items, bounds = answers.items, dict[str, float]()
    for name, statuses, counted in (
        ("once", (ASKED_BACK,), np.zeros_like(items.gold)),
        ("high", ("parse_error", "contradicted"), items.gold),
    ):
        parsed = np.where(np.isin(items.parse_status, statuses), counted, items.parsed)
        scores = values_of(replace(answers, items=replace(items, parsed=parsed)), min_n)
        bounds |= {
            f"{name}_tier_{tier}": scores.get(("primary", f"tier:{tier}"), math.nan)
            for tier in (1, 3)
            if (items.tier == tier).any()
        }
    return {name: 100 * value for name, value in bounds.items()}


def _tier_scores(verdicts: Verdicts, arms: Sequence[ArmFactors], min_n: int) -> _Scores:
    """The primary scores of arms and headlines on the tiers of choice questions."""
    with heard_by(lambda phase: None):  # a line for each scoring says nothing
        results = score(verdicts, arms, Settings(min_n, 1, 0, swaps=1))
    return {
        (row["arm_id"], row["scope"]): row["value"]
        for row in results.scores.to_pylist()
        if row["metric"] == "primary" and row["scope"] in TIERS
    }


def judge_by_others(
    run: Run, store: Store, model_keys: Mapping[str, str], spec: SweepSpec, own: Verdicts
) -> list[Row]:
    """Tier scores and ranks of models (without headlines: of arms) by each reading of the first replies.

    `own` are the verdicts of the run by its own reading.
    """
    by_reading: dict[str, Verdicts] = {STRICT: own, **{name: Verdicts() for name in PEER_READINGS}}
    questions, _ = questions_of(run, store, model_keys)
    choices = questions.filter(pc.not_equal(questions["answer_type"], "report"))
    for model, key in model_keys.items():
        for block, replies in align_completions(run.requests(model), store.completions(key)).blocks():
            of_block = choices.filter(pc.is_in(choices["qa_id"], pc.unique(block["qa_id"])))
            of_choices = block.filter(pc.is_in(block["qa_id"], of_block["qa_id"].combine_chunks()))
            final = finals(replies)
            for name in PEER_READINGS:
                read = _read_by(name, of_choices, final)
                by_reading[name].add(judge(of_choices, read, of_block, spec.dataset.protocol))
    factors = arm_factors(sweep_factors.arms(spec))
    names = {f"{PREFIX}{model}": model for model in headlines(factors)} or {
        arm.arm_id: arm.arm_id for arm in factors if arm.control == "none"
    }
    values = {}
    for reading, verdicts in by_reading.items():
        found = _tier_scores(verdicts, factors, spec.statistics.min_n)
        values[reading] = {(names[arm], tier): value for (arm, tier), value in found.items() if arm in names}
    return [*_peer_rows(values)]


def _read_by(name: str, requests: pa.Table, completions: pa.Table) -> pa.Table:
    """Completions with what a reading finds in them as text, in the form that the prompt asks for."""
    keys = dict(zip(requests["request_key"].to_pylist(), requests["option_keys"].to_pylist(), strict=True))
    rows = []
    for row in completions.select(_OF_REPLY).to_pylist():
        if row["request_key"] in keys:
            if row["finish_reason"] != SAMPLED:  # of samples the majority counts, as in the run
                text = _letters_in(name, row["text"] or "", tuple(keys[row["request_key"]]))
                row |= {"text": text, "finish_reason": "stop"}
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=pa.schema([COMPLETIONS.field(name) for name in _OF_REPLY]))


@lru_cache(maxsize=1 << 16)
def _letters_in(name: str, text: str, option_keys: tuple[str, ...]) -> str:
    letters = PEER_READINGS[name](text, letters_of(option_keys))
    return f"ANSWER: {', '.join(letters)}" if letters else ""


def _peer_rows(values: Mapping[str, _Scores]) -> Iterator[Row]:
    """One row per model and tier, with the score and the rank of each reading; the best first."""
    ranks = {name: _ranks(scores) for name, scores in values.items()}
    for model, scope in sorted(values[STRICT], key=lambda key: (key[1], -values[STRICT][key])):
        row: Row = {"model": model, "scope": scope}
        for name, scores in values.items():
            row |= {name: scores.get((model, scope)), f"{name}_rank": ranks[name].get((model, scope))}
        yield row


def _ranks(scores: _Scores) -> dict[tuple[str, str], int]:
    """The rank of each model on each tier, 1 for the highest score; equal ones share a rank."""
    return {
        (model, scope): 1 + sum(other > value for (_, tier), other in scores.items() if tier == scope)
        for (model, scope), value in scores.items()
        if not math.isnan(value)
    }
