"""Additive counts per patient, and the statistics computed from their sums (protocol 16.6).

A part is one subtask of one arm; its cells are rows (cell, unit), a unit being a patient, or a sum of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.items import Floats, Items
from cardiolens.score.statistics.metrics import mean_defined, ratio
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.signal_detection import (
    CALL_COUNTS,
    CRITERION,
    D_PRIME,
    NORMAL_OR_NOT,
    SEVERITY_SHIFT,
    SHIFT_COUNTS,
    by_patient,
    call_counts,
    of_calls,
    of_shifts,
    shift_counts,
)
from cardiolens.score.statistics.statistic import Key

Kind = Literal["set", "choice", "diagnosis", "report"]
# statistics of how answers are given, on tier 1 and 3, that sentences may claim besides the score
EXTRA_METRICS = ("mean_cardinality", "precision", "recall", CRITERION, D_PRIME, SEVERITY_SHIFT)


@dataclass(frozen=True, slots=True)
class Part:
    """The properties of one subtask that follow from its questions alone."""

    subtask: str
    sequence: str
    tier: int
    kind: Kind
    classes: tuple[int, ...]  # bits that are right somewhere
    n_items: int
    is_ordinal: bool = False

    @property
    def has_calls(self) -> bool:
        """Return whether normal stands against abnormal."""
        return self.subtask in NORMAL_OR_NOT


@dataclass(frozen=True, slots=True)
class Cells:
    """The parts of one arm, sorted, with the cells (cell, patient) of each.

    Arms with the same questions have the same parts.
    """

    parts: tuple[Part, ...]
    rows: tuple[Floats, ...]

    @staticmethod
    def of(answers: Answers, units: int) -> "Cells":
        """Count the answers of one arm; `units` is the number of patients in the cohort."""
        items, reports = answers.items, answers.reports.where(answers.reports.channel == "fields")
        parts: list[Part] = []
        rows: list[Floats] = []
        for name in np.unique(items.subtask):
            of_subtask = items.where(items.subtask == name)
            parts.append(_part(of_subtask))
            rows.append(_of_items(parts[-1], of_subtask, units))
        for name in np.unique(reports.subtask):
            report_rows = reports.where(reports.subtask == name)
            parts.append(Part(str(name), "", 2, "report", (), len(report_rows)))
            rows.append(_of_reports(report_rows, units))
        return Cells(tuple(parts), tuple(rows))


def _part(items: Items) -> Part:
    subtask, tier = str(items.subtask[0]), int(items.tier[0])
    several = items.answer_type[0] == "multi"
    kind: Kind = "set" if several else "diagnosis" if tier == 3 else "choice"
    right = int(np.bitwise_or.reduce(items.gold))
    classes = tuple(bit for bit in range(right.bit_length()) if right >> bit & 1)
    is_ordinal = items.answer_type[0] == "ordinal"
    return Part(subtask, str(items.sequence[0]), tier, kind, classes, len(items), is_ordinal)


def _of_items(part: Part, items: Items, units: int) -> Floats:
    gold, parsed = items.gold, items.parsed
    if part.kind == "set":
        counts = [np.bitwise_count(masks) for masks in (gold & parsed, parsed, gold)] + [parsed > 0]
    elif part.kind == "diagnosis":
        counts = [masks >> bit & 1 for masks in (gold & parsed, parsed, gold) for bit in part.classes]
    else:
        counts = [gold == parsed, np.ones(len(gold))]
    counts += shift_counts(items) if part.is_ordinal else []
    counts += call_counts(items) if part.has_calls else []
    return by_patient(counts, items.patient, units)


def _of_reports(reports: Reports, units: int) -> Floats:
    counts = [reports.counts[:, reports.names.index(name)] for name in ("tp", "fp", "fn")]
    return by_patient(counts, reports.patient, units)


def claimed_statistics(parts: Sequence[Part], sums: Sequence[Floats], min_n: int) -> dict[Key, Floats]:
    """Compute the statistics that sentences may claim, as fractions, from sums (cell, unit) of every part.

    `primary` at every scope, and EXTRA_METRICS on tiers 1 and 3: the values of `aggregates.arm_statistics`.
    """
    values = {part: _statistics(part, cells) for part, cells in zip(parts, sums, strict=True)}
    statistics = {("primary", f"subtask:{part.subtask}"): value["primary"] for part, value in values.items()}
    sufficient = [part for part in parts if part.tier == 1 and part.n_items >= min_n]
    scopes = {f"sequence:{part.sequence}": part.sequence for part in sufficient}
    for scope, sequence in scopes.items():
        statistics["primary", scope] = _mean(
            [values[part]["primary"] for part in sufficient if part.sequence == sequence]
        )
    for metric in ("primary", *EXTRA_METRICS):
        statistics |= _tier(
            metric, 1, [values[part][metric] for part in sufficient if metric in values[part]]
        )
    for tier, metric in ((2, "primary"), (3, "macro_f1")):
        statistics |= _tier("primary", tier, [values[part][metric] for part in parts if part.tier == tier])
    for metric in (CRITERION, D_PRIME):
        statistics |= _tier(
            metric, 3, [values[part][metric] for part in parts if part.tier == 3 and part.has_calls]
        )
    return statistics


def _statistics(part: Part, cells: Floats) -> dict[str, Floats]:
    """The statistics of a subtask; cells of calls are last, and before them those of severity."""
    statistics: dict[str, Floats] = {}
    if part.has_calls:
        cells, calls = cells[:-CALL_COUNTS], cells[-CALL_COUNTS:]
        statistics |= of_calls(calls)
    if part.is_ordinal:
        cells, shifts = cells[:-SHIFT_COUNTS], cells[-SHIFT_COUNTS:]
        statistics |= of_shifts(shifts)
    return statistics | _OF_KIND[part.kind](cells)


def _tier(metric: str, tier: int, values: list[Floats]) -> dict[Key, Floats]:
    return {(metric, f"tier:{tier}"): _mean(values)} if values else {}


def _mean(values: list[Floats]) -> Floats:
    return mean_defined(np.stack(values), axis=0)


def _of_sets(cells: Floats) -> dict[str, Floats]:
    right, called, gold, answered = cells
    nothing = called + gold == 0

    def share(whole: Floats) -> Floats:
        return np.where(nothing, np.nan, np.nan_to_num(ratio(right, whole)))

    return {
        "primary": ratio(2 * right, called + gold),
        "precision": share(called),
        "recall": share(gold),
        "mean_cardinality": ratio(called, answered),
    }


def _of_choices(cells: Floats) -> dict[str, Floats]:
    return {"primary": ratio(cells[0], cells[1])}


def _of_diagnoses(cells: Floats) -> dict[str, Floats]:
    right, called, gold = cells.reshape(3, -1, *cells.shape[1:])
    scores = ratio(2 * right, called + gold)
    return {"primary": ratio(right.sum(axis=0), gold.sum(axis=0)), "macro_f1": mean_defined(scores, axis=0)}


def _of_entities(cells: Floats) -> dict[str, Floats]:
    right, added, missed = cells
    return {"primary": ratio(2 * right, 2 * right + added + missed)}


_OF_KIND: Mapping[Kind, Callable[[Floats], dict[str, Floats]]] = {
    "set": _of_sets,
    "choice": _of_choices,
    "diagnosis": _of_diagnoses,
    "report": _of_entities,
}
