"""Additive counts per patient, the statistics computed from their sums, and the best constant answers.

A part is one subtask of one arm; its cells are rows (cell, unit), a unit being a patient, or a sum of them.
The counts are whole numbers in float64, exact to 2**53, so that sums do not depend on their order.
The best constant answer ignores the images (protocol 8.3); readers that guess are simulated models.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.score.statistics.items import Answers, Bools, Floats, Ints, Items
from cardiolens.score.statistics.metrics import (
    CALL_COUNTS,
    CRITERION,
    D_PRIME,
    NORMAL_OR_NOT,
    SEVERITY_SHIFT,
    SHIFT_COUNTS,
    by_patient,
    call_counts,
    mean_defined,
    of_calls,
    of_shifts,
    ratio,
    shift_counts,
)

Key = tuple[str, str]  # metric, scope
Kind = Literal["set", "choice", "diagnosis", "report"]
Forms = Mapping[str, Mapping[str, Subtask]]  # what fields of a report may hold, by report subtask and field
Cells = Mapping["Part", Floats]  # of one arm: cells (cell, patient) by part, sorted
PartValues = Mapping["Part", Mapping[str, Floats]]  # the statistics of each part, by name
# how answers are given, on tiers 1 and 3, of which questions on prompts may claim a difference
EXTRA_METRICS = ("mean_cardinality", "precision", "recall", CRITERION, D_PRIME, SEVERITY_SHIFT)


@dataclass(frozen=True, slots=True)
class Part:
    """The properties of one subtask that follow from its questions alone."""

    subtask: str
    tier: int
    kind: Kind
    classes: tuple[int, ...]  # bits that are right somewhere
    n_items: int
    is_ordinal: bool = False

    @property
    def has_calls(self) -> bool:
        """Return whether normal stands against abnormal."""
        return self.subtask in NORMAL_OR_NOT

    @property
    def claimable(self) -> Mapping[str, str]:
        """The metrics of its tier that may be claimed, and the names of the subtask's values behind them."""
        if self.tier == 3:
            return {"primary": "macro_f1", CRITERION: CRITERION, D_PRIME: D_PRIME}
        names = ("primary", *EXTRA_METRICS) if self.tier == 1 else ("primary",)
        return dict(zip(names, names, strict=True))


def cells_of(answers: Answers, units: int) -> Cells:
    """Count the answers of one arm; `units` is the number of patients in the cohort.

    Arms with the same questions have the same parts.
    """
    cells: dict[Part, Floats] = {}
    for _, items in answers.items.by_subtask():
        part = part_of(items)
        counts = answer_cells(part, items.gold, items.parsed)
        counts += shift_counts(items) if part.is_ordinal else []
        counts += call_counts(items) if part.has_calls else []
        cells[part] = by_patient(counts, items.patient, units)
    for name, reports in answers.reports.of_fields.by_subtask():
        counts = [reports.counts[:, reports.names.index(count)] for count in ("tp", "fp", "fn")]
        cells[Part(name, 2, "report", (), len(reports))] = by_patient(counts, reports.patient, units)
    return cells


def part_of(items: Items) -> Part:
    """The part that the items of one subtask are."""
    subtask, tier = str(items.subtask[0]), int(items.tier[0])
    several = items.answer_type[0] == "multi"
    kind: Kind = "set" if several else "diagnosis" if tier == 3 else "choice"
    right = int(np.bitwise_or.reduce(items.gold))
    classes = tuple(bit for bit in range(right.bit_length()) if right >> bit & 1)
    is_ordinal = items.answer_type[0] == "ordinal"
    return Part(subtask, tier, kind, classes, len(items), is_ordinal)


def answer_cells(part: Part, gold: Ints, parsed: Ints) -> list[np.ndarray]:
    """What each answer adds to the cells of its kind of part."""
    if part.kind == "set":
        return [np.bitwise_count(masks) for masks in (gold & parsed, parsed, gold)] + [parsed > 0]
    if part.kind == "diagnosis":
        return [masks >> bit & 1 for masks in (gold & parsed, parsed, gold) for bit in part.classes]
    return [gold == parsed, np.ones(len(gold))]


def part_values(part: Part, cells: Floats) -> dict[str, Floats]:
    """The statistics of a subtask, as fractions, from sums (cell, unit) of its cells."""
    values: dict[str, Floats] = {}
    if part.has_calls:
        cells, calls = cells[:-CALL_COUNTS], cells[-CALL_COUNTS:]
        values |= of_calls(calls)
    if part.is_ordinal:
        cells, shifts = cells[:-SHIFT_COUNTS], cells[-SHIFT_COUNTS:]
        values |= of_shifts(shifts)
    return values | kind_values(part.kind, cells)


def kind_values(kind: Kind, cells: Floats) -> dict[str, Floats]:
    """The statistics of a kind of part, without those of calls and of severity."""
    if kind == "set":
        right, called, gold, answered = cells
        nothing = called + gold == 0
        shares = [np.where(nothing, np.nan, np.nan_to_num(ratio(right, total))) for total in (called, gold)]
        return {
            "primary": ratio(2 * right, called + gold),
            "precision": shares[0],
            "recall": shares[1],
            "mean_cardinality": ratio(called, answered),
        }
    if kind == "choice":
        return {"primary": ratio(cells[0], cells[1])}
    if kind == "diagnosis":
        right, called, gold = cells.reshape(3, -1, *cells.shape[1:])
        scores = mean_defined(ratio(2 * right, called + gold), axis=0)
        return {"primary": ratio(right.sum(axis=0), gold.sum(axis=0)), "macro_f1": scores}
    right, added, missed = cells
    return {"primary": ratio(2 * right, 2 * right + added + missed)}


def tier_values(values: PartValues, min_n: int) -> dict[Key, Floats]:
    """The score of every tier, and EXTRA_METRICS on tiers 1 and 3, from the values of every part."""
    tiers: dict[Key, list[Floats]] = {}
    for part, of_part in values.items():
        if part.tier != 1 or part.n_items >= min_n:
            for metric, name in part.claimable.items():
                if name in of_part:
                    tiers.setdefault((metric, f"tier:{part.tier}"), []).append(of_part[name])
    return {key: mean_defined(np.stack(listed), axis=0) for key, listed in tiers.items()}


def claimed_values(parts: Iterable[Part], sums: Iterable[Floats], min_n: int) -> dict[Key, Floats]:
    """The statistics of tiers that may be claimed, as fractions, from sums (cell, unit) of every part."""
    values = {part: part_values(part, cells) for part, cells in zip(parts, sums, strict=True)}
    return tier_values(values, min_n)


def values_of(answers: Answers, min_n: int) -> dict[Key, float]:
    """The same of the answers of one arm, over all its patients at once."""
    items = replace(answers.items, patient=np.zeros_like(answers.items.patient))
    reports = replace(answers.reports, patient=np.zeros_like(answers.reports.patient))
    cells = cells_of(Answers(items, reports), 1)
    return {key: float(value[0]) for key, value in claimed_values(cells, cells.values(), min_n).items()}


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
