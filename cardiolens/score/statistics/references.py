"""Reference scores of answers that ignore the images, and skill beyond them (protocol 8.3).

Protocol 8.3 does not define a guessed report. Here *prevalence* copies the reference of a study drawn at
random, *uniform* draws every field (of several values any non-empty set, each as likely; of a conditional
field only where the draw of its parent opens it), the best *constant* is the list of values with the best
micro F1, at most one of a field that takes one.
"""

import functools
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.score.statistics.counting import Part, answer_cells, kind_values
from cardiolens.score.statistics.items import Bools, Floats, Ints
from cardiolens.score.statistics.metrics import by_patient, mean_defined, ratio

SIMULATIONS = 200
REFERENCES = ("uniform", "prevalence", "constant")
Guesses = Mapping[str, Mapping[str, float]]  # by reader, by metric
Forms = Mapping[str, Mapping[str, Subtask]]
"""What the fields of a report may hold, by report subtask and field."""


def best_constant(part: Part, positive: Floats, items: Floats) -> dict[str, Floats]:
    """The score of the best constant answer by metric; of multi-select the set with the best micro-F1.

    `positive` (option, resample) counts how often each option is right, `items` (resample) all items.
    """
    if part.kind == "set":
        return {"primary": best_constant_f1(positive.T, items, positive.sum(axis=0))}
    if part.kind == "choice":
        return {"primary": ratio(positive, items).max(axis=0)}
    gold = positive[list(part.classes)]
    scores = []
    for at in range(len(gold)):
        is_named = (np.arange(len(gold)) == at)[:, None]
        scores.append(kind_values("diagnosis", np.concatenate([gold * is_named, items * is_named, gold])))
    return {name: np.fmax.reduce([score[name] for score in scores]) for name in scores[0]}


def best_constant_f1(positive: Floats, items: Floats, right: Floats) -> Floats:
    """Micro-F1 of the best constant set, from how often each entry is right (..., entry) among items (...).

    The best set of k entries holds the k most frequent: 2 tp / (k n + all that is right).
    """
    tp = np.cumsum(-np.sort(-positive, axis=-1), axis=-1)
    called = np.arange(1, positive.shape[-1] + 1) * items[..., None]
    best = ratio(2 * tp, called + right[..., None])
    return np.asarray(best.max(axis=-1))


def guesses(part: Part, gold: Ints, size: int, seed: int) -> Guesses:
    """Mean metrics of SIMULATIONS seeded readers: `uniform` over answers, `prevalence` over gold answers."""
    return _guesses(part, gold.tobytes(), size, seed)


@functools.lru_cache(maxsize=1024)  # arms mostly answer the same items
def _guesses(part: Part, gold_bytes: bytes, size: int, seed: int) -> Guesses:
    gold = np.frombuffer(gold_bytes, np.int64)
    dice = np.random.default_rng([seed, zlib.crc32(part.subtask.encode())])
    shape = (SIMULATIONS, len(gold))
    uniform = dice.integers(1, 2**size, shape) if part.kind == "set" else 1 << dice.integers(0, size, shape)
    prevalence = gold[dice.integers(0, len(gold), shape)]
    unit = np.repeat(np.arange(SIMULATIONS), len(gold))
    means = {}
    for name, answers in (("uniform", uniform), ("prevalence", prevalence)):
        counts = answer_cells(part, np.tile(gold, SIMULATIONS), answers.ravel())
        values = kind_values(part.kind, by_patient(counts, unit, SIMULATIONS))
        means[name] = {metric: float(mean_defined(value)) for metric, value in values.items()}
    return means


def skill(score: Floats, reference: Floats) -> Floats:
    """(score - reference) / (1 - reference)."""
    return ratio(score - reference, 1 - reference)


def option_flags(form: Mapping[str, Subtask], entities: Sequence[str], flags: Bools) -> Bools:
    """Convert flags (report, entity) to flags (report, option), with options in the form's order."""
    place = {name: at for at, name in enumerate(entities)}
    names = [f"{field}: {option.text}" for field, subtask in form.items() for option in subtask.options]
    options = np.zeros((len(flags), len(names)), np.bool_)
    present = [at for at, name in enumerate(names) if name in place]
    options[:, present] = flags[:, [place[names[at]] for at in present]]
    return options


def best_constant_report(
    form: Mapping[str, Subtask], positive: Floats, reports: Floats, right: Floats
) -> Floats:
    """Micro F1 of the best constant report, from how often each option is right (..., option).

    `reports` and `right` (...) count reports and all entities that are right, options or not.
    """
    candidates = [
        of_field if subtask.answer_type == "multi" else of_field.max(axis=-1, keepdims=True)
        for subtask, of_field in zip(form.values(), _by_field(form, positive), strict=True)
    ]
    return best_constant_f1(np.concatenate(candidates, axis=-1), reports, right)


def report_guess_scores(
    subtask: str, form: Mapping[str, Subtask], gold: Bools, right: float, seed: int
) -> dict[str, float]:
    """Mean micro F1 of SIMULATIONS seeded readers of each kind on gold (report, option)."""
    return _guess_scores(subtask, tuple(form.values()), gold.tobytes(), right, seed)


@functools.lru_cache(maxsize=256)  # arms mostly answer the same reports
def _guess_scores(
    subtask: str, fields: tuple[Subtask, ...], gold_bytes: bytes, right: float, seed: int
) -> dict[str, float]:
    options = sum(len(field.options) for field in fields)
    gold = np.frombuffer(gold_bytes, np.bool_).reshape(-1, options)
    reports = len(gold)
    dice = np.random.default_rng([seed, zlib.crc32(subtask.encode())])
    scores: dict[str, list[float]] = {"uniform": [], "prevalence": []}
    for _ in range(SIMULATIONS):
        scores["uniform"].append(_f1(gold, _draw_reports(fields, reports, dice), right))
        scores["prevalence"].append(_f1(gold, gold[dice.integers(0, reports, reports)], right))
    return {name: float(np.mean(values)) for name, values in scores.items()}


def _f1(gold: Bools, guess: Bools, right: float) -> float:
    return float(ratio(np.array(2.0 * (gold & guess).sum()), np.array(guess.sum() + right)))


def _draw_reports(fields: Sequence[Subtask], reports: int, dice: np.random.Generator) -> Bools:
    """Draw every field of reports (report, option); conditional fields only where their parent opens them."""
    guesses = {subtask.id: _draw_field(subtask, reports, dice) for subtask in fields}
    for subtask in fields:
        if subtask.parent in guesses:
            parent = next(field for field in fields if field.id == subtask.parent)
            opening = [key in subtask.parent_answers for key in parent.keys]
            guesses[subtask.id] &= guesses[parent.id][:, opening].any(axis=1, keepdims=True)
    return np.concatenate(list(guesses.values()), axis=1)


def _draw_field(subtask: Subtask, reports: int, dice: np.random.Generator) -> Bools:
    size = len(subtask.options)
    if subtask.answer_type == "multi":
        return np.asarray(dice.integers(1, 2**size, (reports, 1)) >> np.arange(size) & 1, np.bool_)
    return np.asarray(dice.integers(0, size, (reports, 1)) == np.arange(size))


def _by_field(form: Mapping[str, Subtask], options: Floats) -> list[Floats]:
    ends = np.cumsum([len(subtask.options) for subtask in form.values()])
    return np.split(options, ends[:-1], axis=-1)
