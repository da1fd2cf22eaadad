"""Every statistic of one choice subtask."""

from dataclasses import replace

import numpy as np

from cardiolens.score.statistics import collapse, metrics, references
from cardiolens.score.statistics.hypothesis_tests import gwet_ac1
from cardiolens.score.statistics.items import Floats, Items
from cardiolens.score.statistics.patient_states import AnswerMasks, Choices, Sets, state_of
from cardiolens.score.statistics.signal_detection import (
    CRITERION,
    D_PRIME,
    NORMAL_OR_NOT,
    by_patient,
    call_counts,
    effective_patients_of_calls,
    of_calls,
    of_shifts,
    shift_counts,
)
from cardiolens.score.statistics.statistic import Basis, Statistic

_PREVALENT = 0.9

# metrics that enter tier scores, each with its references
_REFERRED = {"single": ("accuracy", "macro_f1"), "ordinal": ("accuracy",), "multi": ("micro_f1",)}

_OVER_OPTIONS = ("primary", "micro_f1", "precision", "recall")  # of sets: shares of single options
_OVER_CLASSES = ("macro_f1", "balanced_accuracy")  # means over gold classes


def subtask_statistics(items: Items, weights: Floats, seed: int) -> dict[str, Statistic]:
    """Metrics, references, skill and collapse indices by name, from the items of one subtask and arm.

    `primary` repeats the primary metric; `primary.constant`, `.uniform`, `.prevalence` are its references and
    `primary.skill` is its gain over the best constant answer.
    """
    answer_type = str(items.answer_type[0])
    answers = AnswerMasks(items.gold, items.parsed, items.size)
    state = state_of(answer_type, answers, items.patient, weights.shape[1]).resampled(weights)
    # classes of macro averages are those of the full sample, in every resample
    classes = references.gold_classes(items.gold, items.size)
    values = metrics.of_state(answer_type, state, classes)
    constant = references.best_constant(answer_type, state, classes)
    guesses = references.guesses(items, seed)
    for metric in _REFERRED[answer_type]:
        values[f"{metric}.constant"] = constant[metric]
        values[f"{metric}.skill"] = references.skill(values[metric], constant[metric])
        values |= {f"{metric}.{name}": np.array([means[metric]]) for name, means in guesses.items()}
    values |= _collapse(items, state, weights)
    units = weights.shape[1]
    if str(items.subtask[0]) in NORMAL_OR_NOT:
        values |= of_calls(by_patient(call_counts(items), items.patient, units) @ weights.T)
    if answer_type == "ordinal":
        values |= of_shifts(by_patient(shift_counts(items), items.patient, units) @ weights.T)
    primary = metrics.PRIMARY[answer_type]
    values |= {
        name.replace(primary, "primary"): value for name, value in values.items() if _is(primary, name)
    }
    basis = Basis.of(items)
    of_classes = basis if answer_type == "multi" else basis.of_classes(items)
    of_calls_basis = replace(basis, n_effective=effective_patients_of_calls(items))
    bases = dict.fromkeys((CRITERION, D_PRIME), of_calls_basis)
    if answer_type == "multi":
        options = int(np.bitwise_count(items.gold).sum())
        bases |= dict.fromkeys(_OVER_OPTIONS, replace(basis, n_entities=options))
    return {
        name: Statistic(value, of_classes if name.startswith(_OVER_CLASSES) else bases.get(name, basis))
        for name, value in values.items()
    }


def _is(metric: str, name: str) -> bool:
    return name == metric or name.startswith(f"{metric}.")


def _agreement(table: Floats) -> dict[str, Floats]:
    """Gwet's AC1 where one category is so frequent, true or called, that kappa misleads (8.5)."""
    total = table[0].sum()
    shares = np.concatenate([table[0].sum(axis=axis) for axis in (0, 1)]) / max(total, 1)
    return {"gwet_ac1": gwet_ac1(table)} if shares.max() > _PREVALENT else {}


def _collapse(items: Items, state: Choices | Sets, weights: Floats) -> dict[str, Floats]:
    if isinstance(state, Choices):
        return collapse.of_confusion(state.confusion) | _agreement(metrics.without_unparsed(state.confusion))
    masks, call = np.unique(items.parsed, return_inverse=True)
    calls = np.zeros((weights.shape[1], len(masks)))
    np.add.at(calls, (items.patient, call), 1)
    gold = (state.options[..., 0] + state.options[..., 2]).sum(axis=-1)
    indices = collapse.of_calls(masks, weights @ calls, items.size)
    return indices | {"gold_cardinality": metrics.ratio(gold, state.overlaps.sum(axis=(-2, -1)))}
