"""A full cohort beside a part of it, such as the public one (specification 8.5)."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from cardiolens.errors import InputError
from cardiolens.stats.answers import Answers
from cardiolens.stats.bootstrap import resampling_weights
from cardiolens.stats.differences import compared
from cardiolens.stats.items import Bools, Floats, Items, cohort
from cardiolens.stats.metrics import ratio
from cardiolens.stats.rows import as_row
from cardiolens.stats.states import Answered, Choices
from cardiolens.stats.statistic import Statistic
from cardiolens.stats.tiers import arm_statistics
from cardiolens.tables import SCORES, from_rows


def subcohort_scores(
    verdicts: pa.Table, part: Collection[str], min_n: int, resamples: int, seed: int
) -> pa.Table:
    """Full cohort minus a part of its patients: differences of the compared metrics, by arm.

    The part and the remainder are resampled separately, and the full cohort is both together. Rows as those
    of `scores`; an unknown patient, or a part that is nobody or everybody, is an InputError.
    """
    patients = cohort(verdicts)
    inside = _inside(patients, part)
    weights = separate_weights(inside, resamples, seed)
    method = f"full cohort minus {int(inside.sum())} patients; part and remainder resampled separately"
    method += f", percentile, B={resamples}, seed {seed}"
    answers = Answers.of(verdicts, patients)
    rows: list[dict[str, object]] = []
    for arm in answers.arms:
        whole = answers.of_arm(arm)
        full = compared(arm_statistics(whole, weights, min_n, seed))
        some = compared(arm_statistics(whole.of_patients(inside), weights, min_n, seed))
        rows += [
            {"arm_id": arm}
            | as_row(key, Statistic(full[key].values - some[key].values, full[key].basis), method)
            for key in sorted(set(full) & set(some), key=lambda key: key[::-1])
        ]
    return from_rows(rows, SCORES)


def separate_weights(inside: Bools, resamples: int, seed: int) -> Floats:
    """Resamples of two groups of patients, each of its own size."""
    weights = np.ones((1 + resamples, len(inside)))
    for offset, group in enumerate((inside, ~inside)):
        weights[:, group] = resampling_weights(int(group.sum()), resamples, seed + offset)
    return weights


def gold_shift(verdicts: pa.Table, part: Collection[str]) -> dict[str, float]:
    """Total variation between gold answers of the full cohort and of a part, by single-choice subtask."""
    patients = cohort(verdicts)
    inside = _inside(patients, part)
    answers = Answers.of(verdicts, patients)
    items = answers.of_arm(answers.arms[0]).items
    items = items.where(items.answer_type != "multi")
    subtasks = map(str, np.unique(items.subtask))
    return {subtask: _distance(items.where(items.subtask == subtask), inside) for subtask in subtasks}


def _distance(items: Items, inside: Bools) -> float:
    answered = Answered(items.gold, items.gold, items.size)
    gold = Choices.of(answered, inside[items.patient].astype(np.int64), 2).confusion.sum(axis=-1)
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
