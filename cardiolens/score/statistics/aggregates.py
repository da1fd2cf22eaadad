"""Scores of tiers and sequences (protocol 8.2) from the statistics of their subtasks."""

import numpy as np

from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.corrected import corrected_statistics
from cardiolens.score.statistics.items import Floats, Items
from cardiolens.score.statistics.references import skill
from cardiolens.score.statistics.report_references import Forms
from cardiolens.score.statistics.reports import report_statistics
from cardiolens.score.statistics.statistic import Basis, Key, Statistic, mean_of
from cardiolens.score.statistics.subtasks import subtask_statistics

Subtasks = dict[str, dict[str, Statistic]]  # by subtask, by metric

# beside the primary value, the means over the subtasks that have them
_BESIDE = ("collapse_index", "mean_cardinality", "precision", "recall", "abnormal_call")
_REFERENCES = ("uniform", "prevalence", "constant")


def arm_statistics(
    answers: Answers, weights: Floats, min_n: int, seed: int, forms: Forms
) -> dict[Key, Statistic]:
    """Statistics of every subtask, sequence and tier, of the answers of one arm."""
    items = answers.items
    by_subtask = {
        str(subtask): subtask_statistics(items.where(items.subtask == subtask), weights, seed)
        for subtask in np.unique(items.subtask)
    }
    found = {
        (metric, f"subtask:{subtask}"): statistic
        for subtask, statistics in by_subtask.items()
        for metric, statistic in statistics.items()
    }
    found |= _understanding(by_subtask, items.where(items.tier == 1), min_n)
    found |= report_statistics(answers.reports, weights, seed, forms)
    found |= corrected_statistics(answers, weights, min_n)
    return found | _diagnosis(by_subtask, items.where(items.tier == 3))


def _understanding(by_subtask: Subtasks, items: Items, min_n: int) -> dict[Key, Statistic]:
    """Tier 1 and its sequences: unweighted means of primary values."""
    scopes = {f"sequence:{sequence}": items.sequence == sequence for sequence in np.unique(items.sequence)}
    scopes |= {"tier:1": items.tier == 1} if len(items) else {}
    found: dict[Key, Statistic] = {}
    for scope, chosen in scopes.items():
        kept, basis = _enough(items.where(chosen), min_n)
        found |= _with_references(by_subtask, kept, "primary", basis, scope)
    return found | (_beside(by_subtask, items, min_n) if len(items) else {})


def _beside(by_subtask: Subtasks, items: Items, min_n: int) -> dict[Key, Statistic]:
    found: dict[Key, Statistic] = {}
    for metric in _BESIDE:
        having = [subtask for subtask, statistics in by_subtask.items() if metric in statistics]
        kept, basis = _enough(items.where(np.isin(items.subtask, having)), min_n)
        found[metric, "tier:1"] = mean_of({subtask: by_subtask[subtask][metric] for subtask in kept}, basis)
    return found


def _enough(items: Items, min_n: int) -> tuple[list[str], Basis]:
    """The subtasks with min_n items, and a basis that lists the others."""
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    kept, dropped = subtasks[sizes >= min_n], subtasks[sizes < min_n]
    note = f"mean of {len(kept)} subtasks"
    if len(dropped):
        note += f", without {' '.join(dropped)} (fewer than {min_n} items)"
    return list(map(str, kept)), Basis.of(items.where(np.isin(items.subtask, kept)), note)


def _diagnosis(by_subtask: Subtasks, items: Items) -> dict[Key, Statistic]:
    """Tier 3: mean macro-F1 over D01 and D02, accuracy beside it; D01 alone, and said so, without D02."""
    subtasks = list(map(str, np.unique(items.subtask)))
    if not subtasks:
        return {}
    which = " and ".join(subtasks) if len(subtasks) > 1 else f"{subtasks[0]} alone"
    basis = Basis.of(items, f"macro_f1 of {which}").of_classes(items)
    accuracies = {subtask: by_subtask[subtask]["accuracy"] for subtask in subtasks}
    accuracy = mean_of(accuracies, Basis.of(items, f"accuracy of {which}"))
    return _with_references(by_subtask, subtasks, "macro_f1", basis, "tier:3") | {
        ("accuracy", "tier:3"): accuracy
    }


def _with_references(
    by_subtask: Subtasks, subtasks: list[str], metric: str, basis: Basis, scope: str
) -> dict[Key, Statistic]:
    """The mean of a metric over subtasks as `primary` of a scope, its references, and skill."""
    means = {
        name: mean_of({subtask: by_subtask[subtask][f"{metric}{name}"] for subtask in subtasks}, basis)
        for name in ("", *(f".{reference}" for reference in _REFERENCES))
    }
    means[".skill"] = Statistic(skill(means[""].values, means[".constant"].values), basis)
    return {(f"primary{name}", scope): statistic for name, statistic in means.items()}
