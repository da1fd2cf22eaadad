"""Scores of tiers and sequences (protocol 8.2) from the statistics of their subtasks."""

from dataclasses import replace

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.collapse import ENTROPY_DEFICIT
from cardiolens.score.statistics.corrected import corrected_statistics
from cardiolens.score.statistics.items import Floats, Items
from cardiolens.score.statistics.references import skill
from cardiolens.score.statistics.report_references import Forms
from cardiolens.score.statistics.report_scores import report_statistics
from cardiolens.score.statistics.signal_detection import (
    CRITERION,
    D_PRIME,
    NORMAL_OR_NOT,
    SEVERITY_SHIFT,
    effective_patients_of_calls,
)
from cardiolens.score.statistics.statistic import Basis, Key, Statistic, mean_of
from cardiolens.score.statistics.subtasks import subtask_statistics

Subtasks = dict[str, dict[str, Statistic]]  # by subtask, by metric

# besides the primary value: means over the subtasks that have these metrics
_EXTRA_METRICS = (
    *("collapse_index", "mean_cardinality", "precision", "recall", "abnormal_call"),
    *(SEVERITY_SHIFT, ENTROPY_DEFICIT),
)
_OF_CLASSES = (CRITERION, D_PRIME)  # rates among the normal and among the abnormal weigh alike
_REFERENCES = ("uniform", "prevalence", "constant")


def arm_statistics(
    answers: Answers, weights: Floats, min_n: int, seed: int, forms: Forms
) -> dict[Key, Statistic]:
    """Compute the statistics of every subtask, sequence and tier from the answers of one arm."""
    items = answers.items
    by_subtask = {
        str(subtask): subtask_statistics(items.where(items.subtask == subtask), weights, seed)
        for subtask in np.unique(items.subtask)
    }
    statistics = {
        (metric, f"subtask:{subtask}"): statistic
        for subtask, of_subtask in by_subtask.items()
        for metric, statistic in of_subtask.items()
    }
    statistics |= _understanding(by_subtask, items.where(items.tier == 1), min_n)
    statistics |= report_statistics(answers.reports, weights, seed, forms)
    statistics |= corrected_statistics(answers, weights, min_n)
    return statistics | _diagnosis(by_subtask, items.where(items.tier == 3))


def _understanding(by_subtask: Subtasks, items: Items, min_n: int) -> dict[Key, Statistic]:
    """Tier 1 and its sequences: unweighted means of primary values."""
    scopes = {f"sequence:{sequence}": items.sequence == sequence for sequence in np.unique(items.sequence)}
    scopes |= {"tier:1": items.tier == 1} if len(items) else {}
    statistics: dict[Key, Statistic] = {}
    for scope, in_scope in scopes.items():
        subtasks, basis = _enough(items.where(in_scope), min_n)
        statistics |= _with_references(by_subtask, subtasks, "primary", basis, scope)
    return statistics | (_extra_means(by_subtask, items, min_n) if len(items) else {})


def _extra_means(by_subtask: Subtasks, items: Items, min_n: int) -> dict[Key, Statistic]:
    means: dict[Key, Statistic] = {}
    for metric in (*_EXTRA_METRICS, *_OF_CLASSES):
        subtasks = [subtask for subtask, statistics in by_subtask.items() if metric in statistics]
        sufficient, basis = _enough(items.where(np.isin(items.subtask, subtasks)), min_n)
        if metric in _OF_CLASSES:
            basis = _basis_of_calls(items.where(np.isin(items.subtask, sufficient)), basis)
        means[metric, "tier:1"] = mean_of(
            {subtask: by_subtask[subtask][metric] for subtask in sufficient}, basis
        )
    return means


def _basis_of_calls(items: Items, basis: Basis) -> Basis:
    """A basis for z values of rates, which are known by the rarer answers."""
    return replace(basis, n_effective=effective_patients_of_calls(items))


def _enough(items: Items, min_n: int) -> tuple[list[str], Basis]:
    """Return the subtasks with at least min_n items, and a basis whose note lists the others."""
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    sufficient, insufficient = subtasks[sizes >= min_n], subtasks[sizes < min_n]
    note = f"mean of {counted(len(sufficient), 'subtask')}"
    if len(insufficient):
        note += f", without {' '.join(insufficient)} (fewer than {min_n} items)"
    return list(map(str, sufficient)), Basis.of(items.where(np.isin(items.subtask, sufficient)), note)


def _diagnosis(by_subtask: Subtasks, items: Items) -> dict[Key, Statistic]:
    """Tier 3: mean macro-F1 and accuracy over D01 and D02; without D02 those of D01, with a note."""
    subtasks = list(map(str, np.unique(items.subtask)))
    if not subtasks:
        return {}
    names = " and ".join(subtasks) if len(subtasks) > 1 else f"{subtasks[0]} alone"
    basis = Basis.of(items, f"macro_f1 of {names}").of_classes(items)
    accuracies = {subtask: by_subtask[subtask]["accuracy"] for subtask in subtasks}
    accuracy = mean_of(accuracies, Basis.of(items, f"accuracy of {names}"))
    statistics = _with_references(by_subtask, subtasks, "macro_f1", basis, "tier:3")
    for metric in _OF_CLASSES:
        calls = {name: by_subtask[name][metric] for name in subtasks if name in NORMAL_OR_NOT}
        if calls:
            called = items.where(np.isin(items.subtask, list(calls)))
            note = f"{metric} of {' and '.join(calls)}"
            statistics[metric, "tier:3"] = mean_of(calls, _basis_of_calls(called, Basis.of(called, note)))
    deficits = {
        name: by_subtask[name][ENTROPY_DEFICIT] for name in subtasks if ENTROPY_DEFICIT in by_subtask[name]
    }
    of_deficits = Basis.of(items, f"{ENTROPY_DEFICIT} of {names}")
    statistics[ENTROPY_DEFICIT, "tier:3"] = mean_of(deficits, of_deficits)
    return statistics | {("accuracy", "tier:3"): accuracy}


def _with_references(
    by_subtask: Subtasks, subtasks: list[str], metric: str, basis: Basis, scope: str
) -> dict[Key, Statistic]:
    """Average a metric, its references and its skill over subtasks, as `primary` of a scope."""
    means = {
        name: mean_of({subtask: by_subtask[subtask][f"{metric}{name}"] for subtask in subtasks}, basis)
        for name in ("", *(f".{reference}" for reference in _REFERENCES))
    }
    means[".skill"] = Statistic(skill(means[""].values, means[".constant"].values), basis)
    return {(f"primary{name}", scope): statistic for name, statistic in means.items()}
