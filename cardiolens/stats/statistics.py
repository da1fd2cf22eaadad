"""Every statistic of one arm, in the cohort and in each resample of it."""

from dataclasses import dataclass

import numpy as np

from cardiolens.stats import metrics
from cardiolens.stats.items import Floats, Items
from cardiolens.stats.states import Choices, Sets, State

Key = tuple[str, str]  # metric, scope
_STATES: dict[str, type[Choices] | type[Sets]] = {"single": Choices, "ordinal": Choices, "multi": Sets}


@dataclass(frozen=True, slots=True)
class Basis:
    """What a statistic rests on."""

    n_items: int
    n_patients: int
    n_parse_error: int  # truncated replies included
    n_refusal: int
    note: str = ""

    @staticmethod
    def of(items: Items, note: str = "") -> "Basis":
        """Counts over items."""
        return Basis(
            n_items=len(items),
            n_patients=len(np.unique(items.patient)),
            n_parse_error=int(np.isin(items.parse_status, ["parse_error", "truncated"]).sum()),
            n_refusal=int((items.parse_status == "refusal").sum()),
            note=note,
        )


@dataclass(frozen=True, slots=True)
class Statistic:
    """Values as fractions: entry 0 in the cohort, the rest in its resamples."""

    values: Floats
    basis: Basis


def arm_statistics(items: Items, weights: Floats, min_n: int) -> dict[Key, Statistic]:
    """Metrics of each subtask, means of each sequence, and tier scores, of the items of one arm."""
    found: dict[Key, Statistic] = {}
    for subtask in np.unique(items.subtask):
        found |= _of_subtask(str(subtask), items.where(items.subtask == subtask), weights)
    understanding = items.where(items.tier == 1)
    for sequence in np.unique(understanding.sequence):
        group = understanding.where(understanding.sequence == sequence)
        found["primary", f"sequence:{sequence}"] = _mean(found, "primary", group, min_n)
    if len(understanding):
        found["primary", "tier:1"] = _mean(found, "primary", understanding, min_n)
    return found | _diagnosis(found, items.where(items.tier == 3))


def _of_subtask(subtask: str, items: Items, weights: Floats) -> dict[Key, Statistic]:
    answer_type = str(items.answer_type[0])
    state: State = _STATES[answer_type].of(items, weights.shape[1]).resampled(weights)
    # classes of macro averages are those of the full sample, in every resample
    classes = np.isin(np.arange(items.options.max()), np.log2(items.gold).astype(int))
    basis = Basis.of(items)
    values = metrics.of_state(answer_type, state, classes)
    values["primary"] = values[metrics.PRIMARY[answer_type]]
    return {(metric, f"subtask:{subtask}"): Statistic(value, basis) for metric, value in values.items()}


def _mean(found: dict[Key, Statistic], metric: str, items: Items, min_n: int) -> Statistic:
    """Unweighted mean of a metric over the subtasks of some items that have min_n of them."""
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    kept, dropped = subtasks[sizes >= min_n], subtasks[sizes < min_n]
    note = f"mean of {len(kept)} subtasks"
    if len(dropped):
        note += f", without {' '.join(dropped)} (fewer than {min_n} items)"
    basis = Basis.of(items.where(np.isin(items.subtask, kept)), note)
    any_statistic = found[metric, f"subtask:{subtasks[0]}"]
    if not len(kept):
        return Statistic(np.full_like(any_statistic.values, np.nan), basis)
    values = np.stack([found[metric, f"subtask:{subtask}"].values for subtask in kept], axis=-1)
    return Statistic(metrics.mean_defined(values), basis)


def _diagnosis(found: dict[Key, Statistic], items: Items) -> dict[Key, Statistic]:
    """Tier 3: mean macro-F1 over D01 and D02, accuracy beside it; D01 alone, and said so, without D02."""
    if not len(items):
        return {}
    by_metric = {"primary": "macro_f1", "accuracy": "accuracy"}
    return {
        (name, "tier:3"): _noted(_mean(found, metric, items, 1), metric, items)
        for name, metric in by_metric.items()
    }


def _noted(statistic: Statistic, metric: str, items: Items) -> Statistic:
    subtasks = " and ".join(np.unique(items.subtask))
    basis = Basis.of(
        items, f"mean {metric} of {subtasks}" if " and " in subtasks else f"{metric} of {subtasks} alone"
    )
    return Statistic(statistic.values, basis)
