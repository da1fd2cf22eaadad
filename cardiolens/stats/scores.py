"""Verdicts as the table of scores."""

import pyarrow as pa

from cardiolens.stats.answers import Answers
from cardiolens.stats.bootstrap import percentile, resampling_weights
from cardiolens.stats.items import Floats, cohort
from cardiolens.stats.statistic import Key, Statistic
from cardiolens.stats.tiers import arm_statistics
from cardiolens.tables import SCORES, from_rows

# metrics with a unit of their own; all others are percent
OWN_UNIT = frozenset({"mean_rank_error", "effective_classes", "mean_cardinality", "gold_cardinality"})


def score(verdicts: pa.Table, min_n: int, resamples: int, seed: int) -> pa.Table:
    """Scores of every arm with 95 % intervals: the metrics of each subtask, means by sequence, tier scores.

    Values are percent, save those of OWN_UNIT. Items that were not run stay out. Rows are sorted by
    (arm, scope, metric), and neither order nor parts of `verdicts` change a digit.
    """
    patients = cohort(verdicts)
    weights = resampling_weights(len(patients), resamples, seed)
    answers = Answers.of(verdicts, patients)
    method = f"percentile cluster bootstrap, B={resamples}, seed {seed}"
    rows: list[dict[str, object]] = []
    for arm in answers.arms:
        found = arm_statistics(answers.of_arm(arm), weights, min_n, seed)
        rows += [
            {"arm_id": arm} | as_row(key, statistic, method)
            for key, statistic in sorted(found.items(), key=lambda entry: entry[0][::-1])
        ]
    return from_rows(rows, SCORES)


def as_row(key: Key, statistic: Statistic, method: str, level: float = 0.95) -> dict[str, object]:
    """A statistic as a row of scores, less its arms."""
    metric, scope = key
    basis = statistic.basis
    interval = percentile(_bounded(statistic) * (1 if metric in OWN_UNIT else 100), level)
    how = method if len(statistic.values) > 1 else "mean of 200 simulations, no interval"
    how = how if basis.n_patients > 1 else "no interval: fewer than 2 patients"
    return {
        "metric": metric,
        "scope": scope,
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "n_items": basis.n_items,
        "n_patients": basis.n_patients,
        "n_parse_error": basis.n_parse_error,
        "n_refusal": basis.n_refusal,
        "method": f"{basis.note}; {how}" if basis.note else how,
    }


def _bounded(statistic: Statistic) -> Floats:
    """The values, without resamples where they can say nothing."""
    return statistic.values if statistic.basis.n_patients > 1 else statistic.values[:1]
