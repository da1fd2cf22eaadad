"""Statistics as rows of the table of scores."""

from collections.abc import Mapping

from cardiolens.score.statistics.statistic import Key, Statistic

# metrics with a unit of their own; all others are percent
OWN_UNIT = frozenset({"mean_rank_error", "effective_classes", "mean_cardinality", "gold_cardinality"})


def as_row(key: Key, statistic: Statistic, method: str, level: float = 0.95) -> dict[str, object]:
    """Convert a statistic with its interval to a score row without its arms."""
    metric, scope = key
    basis = statistic.basis
    interval = statistic.interval(scale(metric), level)
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
        "method": "; ".join(filter(None, (basis.note, _how(metric, statistic, method)))),
    }


def scale(metric: str) -> float:
    """Factor from a fraction to the metric's unit."""
    return 1.0 if metric in OWN_UNIT or metric.endswith("_p") else 100.0


def _how(metric: str, statistic: Statistic, method: str) -> str:
    if metric.endswith("_p"):
        return method
    if metric.endswith((".uniform", ".prevalence")):
        return "mean of 200 simulations, no interval"
    return statistic.basis.without_interval or method


ONE_ANSWER = "one answer a subtask"  # of a reader that gains nothing from the text

TIERS = ("tier:1", "tier:2", "tier:3")


Row = Mapping[str, object]
