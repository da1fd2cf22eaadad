"""Reference scores of answers that ignore the images, and skill beyond them (protocol 8.3)."""

import functools
import zlib
from collections.abc import Mapping

import numpy as np

from cardiolens.score.statistics import metrics
from cardiolens.score.statistics.items import Bools, Floats, Ints, Items
from cardiolens.score.statistics.patient_states import AnswerMasks, Choices, Sets, State, state_of

SIMULATIONS = 200
Guesses = Mapping[str, Mapping[str, float]]  # by reader, by metric


def best_constant(answer_type: str, state: State, classes: Bools) -> dict[str, Floats]:
    """The score of the best constant answer by metric; of multi-select the set with the best micro-F1."""
    if isinstance(state, Sets):
        positive = state.options[..., 0] + state.options[..., 2]
        return {"micro_f1": best_constant_f1(positive, _items_in(state), positive.sum(axis=-1))}
    assert isinstance(state, Choices)
    gold = state.confusion.sum(axis=-1)
    size = gold.shape[-1]
    scores = [metrics.of_state(answer_type, _always(gold, answer), classes) for answer in range(size)]
    return {name: _best(name, np.stack([score[name] for score in scores])) for name in scores[0]}


def best_constant_f1(positive: Floats, items: Floats, right: Floats) -> Floats:
    """Micro-F1 of the best constant set, from how often each entry is right (..., entry) among items (...).

    The best set of k entries holds the k most frequent: 2 tp / (k n + all that is right).
    """
    tp = np.cumsum(-np.sort(-positive, axis=-1), axis=-1)
    called = np.arange(1, positive.shape[-1] + 1) * items[..., None]
    best = metrics.ratio(2 * tp, called + right[..., None])
    return np.asarray(best.max(axis=-1))


def guesses(items: Items, seed: int) -> Guesses:
    """Mean metrics of SIMULATIONS seeded readers: `uniform` over answers, `prevalence` over gold answers."""
    return _guesses(str(items.subtask[0]), str(items.answer_type[0]), items.size, items.gold.tobytes(), seed)


@functools.lru_cache(maxsize=1024)  # arms mostly answer the same items
def _guesses(subtask: str, answer_type: str, size: int, gold_bytes: bytes, seed: int) -> Guesses:
    gold = np.frombuffer(gold_bytes, np.int64)
    dice = np.random.default_rng([seed, zlib.crc32(subtask.encode())])
    shape = (SIMULATIONS, len(gold))
    uniform = (
        dice.integers(1, 2**size, shape) if answer_type == "multi" else 1 << dice.integers(0, size, shape)
    )
    prevalence = gold[dice.integers(0, len(gold), shape)]
    return {
        "uniform": _simulated(answer_type, gold, uniform, size),
        "prevalence": _simulated(answer_type, gold, prevalence, size),
    }


def skill(score: Floats, reference: Floats) -> Floats:
    """(score - reference) / (1 - reference)."""
    return metrics.ratio(score - reference, 1 - reference)


def _simulated(answer_type: str, gold: Ints, answers: Ints, size: int) -> dict[str, float]:
    """Mean metrics of answers (simulation, item): each simulation is a unit of its own."""
    simulations, number = answers.shape
    unit = np.repeat(np.arange(simulations), number)
    state = state_of(
        answer_type, AnswerMasks(np.tile(gold, simulations), answers.ravel(), size), unit, simulations
    )
    scores = metrics.of_state(answer_type, state, gold_classes(gold, size))
    return {name: float(metrics.mean_defined(values)) for name, values in scores.items()}


def _always(gold: Floats, answer: int) -> Choices:
    size = gold.shape[-1]
    confusion = np.zeros((*gold.shape, size + 1))
    confusion[..., answer] = gold
    return Choices(confusion)


def gold_classes(gold: Ints, size: int) -> Bools:
    """The options that are true somewhere, of single answers as bit masks."""
    return np.asarray((np.bitwise_or.reduce(gold, initial=0) >> np.arange(size)) & 1, np.bool_)


def _best(metric: str, scores: Floats) -> Floats:
    lower_is_better = metric == "mean_rank_error"
    return np.asarray(np.fmin.reduce(scores) if lower_is_better else np.fmax.reduce(scores))


def _items_in(state: Sets) -> Floats:
    return np.asarray(state.overlaps.sum(axis=(-2, -1)))
