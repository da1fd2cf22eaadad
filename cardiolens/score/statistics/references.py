"""The best constant answer, which ignores the images, and skill beyond it (protocol 8.3).

Readers that guess are simulated models (`model=uniform`, `model=prevalence`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.score.statistics.counting import Part, kind_values
from cardiolens.score.statistics.items import Bools, Floats
from cardiolens.score.statistics.metrics import ratio

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

    It has at most one value of a field that takes one. `reports` and `right` (...) count reports and all
    entities that are right, options or not.
    """
    ends = np.cumsum([len(subtask.options) for subtask in form.values()])
    candidates = [
        of_field if subtask.answer_type == "multi" else of_field.max(axis=-1, keepdims=True)
        for subtask, of_field in zip(form.values(), np.split(positive, ends[:-1], axis=-1), strict=True)
    ]
    return best_constant_f1(np.concatenate(candidates, axis=-1), reports, right)
