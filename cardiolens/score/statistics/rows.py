"""Statistics as rows of the table of scores."""

import math
from collections.abc import Mapping

from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.near_boundary import Kind
from cardiolens.score.statistics.statistic import Basis, Key, Statistic

# metrics that are shares or means of shares, from 0 to 1; a suffix names an option, a bin or a coverage
_SHARE_METRICS = """
primary accuracy macro_f1 micro_f1 balanced_accuracy within_one precision recall option_macro_f1 sample_f1
jaccard exact_match exact_answers abnormal_call entity_f1 abnormal_f1 hallucination omission
text_entity_f1 answers_changed auroc average_precision risk calibration modal_share unparsed
set_accuracy hit set_precision set_recall set_f1
moved_with_lesion right_with_and_without moved_without_cause
within_tolerance constant_within recall_at_1 recall_at_3 recall_at_5
"""
_SHARES = frozenset(_SHARE_METRICS.split())
# metrics with a unit of their own; all others are percent
OWN_UNIT = frozenset(
    {"mean_rank_error", "effective_classes", "mean_cardinality", "gold_cardinality"}
    | {"criterion", "d_prime", "severity_shift"}
    | {"absolute_error", "bias", "limit_low", "limit_high", "constant_error", "error_below_constant"}
)


def as_row(key: Key, statistic: Statistic, method: str, level: float = 0.95) -> dict[str, object]:
    """Convert a statistic with its interval to a score row without its arms."""
    metric, scope = key
    basis = statistic.basis
    interval = statistic.interval(scale(metric), level, _kind(metric, statistic))
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
        "method": "; ".join(filter(None, (basis.note, _hospitals(basis), _how(metric, interval, method)))),
    }


def _hospitals(basis: Basis) -> str:
    return "" if basis.n_hospitals is None else f"{basis.n_hospitals} hospitals"


def scale(metric: str) -> float:
    """Factor from a fraction to the metric's unit."""
    return 1.0 if metric in OWN_UNIT or metric.endswith("_p") else 100.0


def _kind(metric: str, statistic: Statistic) -> Kind:
    name, _, suffix = metric.partition(".")
    if name not in _SHARES or suffix == "skill" or metric.endswith("_p"):
        return "other"
    return "difference" if statistic.of_pairs else "share"


def _how(metric: str, interval: Interval, method: str) -> str:
    if metric.endswith("_p"):
        return method
    if metric.endswith((".uniform", ".prevalence")):
        return "mean of 200 simulations, no interval"
    if math.isnan(interval.low):
        return interval.how or method
    return "; ".join(filter(None, (interval.how, method)))


ONE_ANSWER = "one answer a subtask"  # of a reader that gains nothing from the text

TIERS = ("tier:1", "tier:2", "tier:3")


Row = Mapping[str, object]
