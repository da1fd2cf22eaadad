"""Compare a full cohort with a part of it, such as the public one (protocol 8.5, 11.5)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cardiolens.base.errors import InputError
from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.evidence_analysis import by_interval
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.arm_answers import ArmAnswers
from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.headlines import PREFIX, Headlines, model_means
from cardiolens.score.statistics.hypothesis_tests import holm
from cardiolens.score.statistics.items import Bools, Floats, Items
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.paired import kendall
from cardiolens.score.statistics.patient_states import AnswerMasks, Choices
from cardiolens.score.statistics.report_references import Forms
from cardiolens.score.statistics.resampling import Resampling
from cardiolens.score.statistics.rows import TIERS, Row, as_row
from cardiolens.score.statistics.statistic import Key, Statistic


@dataclass(frozen=True, slots=True)
class Part:
    """A named subset of the patients of a cohort."""

    name: str
    patients: Collection[str]


def full_versus_part(
    answers: ArmAnswers,
    part: Part,
    models: Headlines,
    *,
    min_n: int,
    resamples: int,
    seed: int,
    forms: Forms | None = None,
    simulated: Collection[str] = (),
) -> Analysis:
    """Headlines on the full cohort and on a part, their differences, and shifts of gold answers.

    `simulated` are models that are simulated readers: they are in the table, but in no sentence.

    Part and remainder are resampled separately; the full cohort is both together. An unknown
    patient, or a part with no or all patients, is an InputError.
    """
    inside = _inside(answers.patients, part.patients)
    sampling = Resampling(separate_weights(inside, resamples, seed), min_n, seed, forms or {})
    method = f"full cohort minus {int(inside.sum())} patients; part and remainder resampled separately"
    method += f", expanded percentile, B={resamples}, seed {seed}"
    rows: list[Row] = []
    for model, protocols in models.items():
        names = [arm for of_protocol in protocols.values() for arm in of_protocol]
        arms = [answers[arm].where_judged() for arm in names]
        full, of_part = (
            model_means(
                {
                    name: sampling.statistics(arm_answers)
                    for name, arm_answers in zip(names, side_answers, strict=True)
                },
                protocols,
            )
            for side_answers in (arms, [arm.of_patients(inside) for arm in arms])
        )
        rows += [{"arm_id": f"{PREFIX}{model}"} | row for row in _differences(full, of_part, method)]
    simulated_ids = {f"{PREFIX}{model}" for model in simulated}
    real = [row for row in rows if row["arm_id"] not in simulated_ids]
    findings = [*_changes(part.name, real), *_agreements(part.name, real)]
    return Analysis(f"full versus {part.name} cohort", [*rows, *_shifts(answers, part)], tuple(findings))


def _differences(
    full: Mapping[Key, Statistic], part: Mapping[Key, Statistic], method: str
) -> list[dict[str, object]]:
    return [
        as_row(key, Statistic(full[key].values - part[key].values, full[key].basis, of_pairs=True), method)
        | {"full": 100 * float(full[key].values[0]), "part": 100 * float(part[key].values[0])}
        for key in full
        if key in part
    ]


def _changes(name: str, rows: Sequence[Row]) -> list[Finding]:
    findings = []
    scores = [row for row in rows if row["metric"] == "primary"]
    for row, evidence in zip(scores, by_interval(scores), strict=True):
        model, tier = str(row["arm_id"]).removeprefix(PREFIX), str(row["scope"]).replace(":", " ")
        cause = f"Taking the full cohort instead of its {name} part"
        findings.append(sentences.change(cause, f"the score of {model} on {tier}", row, evidence))
    return findings


def _agreements(name: str, rows: Sequence[Row]) -> list[Finding]:
    """Findings on the ranks of models in the full cohort and in the part."""
    claims = []
    for tier in TIERS:
        of_tier = [row for row in rows if (row["metric"], row["scope"]) == ("primary", tier)]
        full, part = (np.array([float(str(row[side])) for row in of_tier]) for side in ("full", "part"))
        test = kendall(full, part)
        if not np.isnan(test.p):
            detail = f"Kendall's tau {sentences.signed(test.statistic, 2)} over {len(of_tier)} models"
            claim = f"the full cohort and its {name} part rank models alike on {tier.replace(':', ' ')}"
            alike = test.p if test.statistic > 0 else 1.0
            claims.append((claim, alike, detail))
    adjusted = holm([p for _, p, _ in claims])
    return [
        sentences.hypothesis(claim, "above", p, detail)
        for (claim, _, detail), p in zip(claims, adjusted, strict=True)
    ]


def _shifts(answers: ArmAnswers, part: Part) -> list[Row]:
    return [
        {"metric": "gold_shift", "scope": f"subtask:{subtask}", "value": 100 * shift}
        for subtask, shift in gold_shift(answers, part.patients).items()
    ]


def separate_weights(inside: Bools, resamples: int, seed: int) -> Floats:
    """Resample two groups of patients separately, each at its own size."""
    weights = np.ones((1 + resamples, len(inside)))
    for offset, group in enumerate((inside, ~inside)):
        weights[:, group] = resampling_weights(int(group.sum()), resamples, seed + offset)
    return weights


def gold_shift(answers: ArmAnswers, part: Collection[str]) -> dict[str, float]:
    """Total variation between gold answers of the full cohort and of a part, by single-choice subtask."""
    inside = _inside(answers.patients, part)
    items = answers.judged[answers.arms[0]].items
    items = items.where(items.answer_type != "multi")
    subtasks = map(str, np.unique(items.subtask))
    return {subtask: _distance(items.where(items.subtask == subtask), inside) for subtask in subtasks}


def _distance(items: Items, inside: Bools) -> float:
    masks = AnswerMasks(items.gold, items.gold, items.size)
    gold = Choices.of(masks, inside[items.patient].astype(np.int64), 2).confusion.sum(axis=-1)
    full, part = gold.sum(axis=0), gold[1]
    return float(0.5 * np.abs(ratio(full, full.sum()) - ratio(part, part.sum())).sum())


def _inside(patients: list[str], part: Collection[str]) -> Bools:
    unknown = sorted(set(part) - set(patients))
    if unknown:
        raise InputError(f"patient {unknown[0]!r} of the part is not in the cohort; name patients of the run")
    inside = np.isin(patients, list(part))
    if inside.all() or not inside.any():
        raise InputError(
            f"the part has {int(inside.sum())} of {len(patients)} patients; it must be a proper part"
        )
    return np.asarray(inside)
