"""Additive counts per patient, and the statistics computed from their sums (protocol 16.6).

A part is one subtask of one arm; its cells are rows (cell, unit), a unit being a patient, or a sum of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cardiolens.protocol.tasks.catalogue import GATES
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.items import Floats, Ints, Items
from cardiolens.score.statistics.metrics import mean_defined, ratio
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.statistic import Key

Kind = Literal["set", "choice", "gate", "diagnosis", "report"]
# statistics of tier 1, besides its score, that sentences may claim
EXTRA_METRICS = ("mean_cardinality", "precision", "recall", "abnormal_call")
_NORMAL = 1


@dataclass(frozen=True, slots=True)
class Part:
    """The properties of one subtask that follow from its questions alone."""

    subtask: str
    sequence: str
    tier: int
    kind: Kind
    classes: tuple[int, ...]  # bits that are right somewhere
    n_items: int


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
    kind: Kind = "set" if several else "diagnosis" if tier == 3 else "gate" if subtask in GATES else "choice"
    right = int(np.bitwise_or.reduce(items.gold))
    classes = tuple(bit for bit in range(right.bit_length()) if right >> bit & 1)
    return Part(subtask, str(items.sequence[0]), tier, kind, classes, len(items))


def _of_items(part: Part, items: Items, units: int) -> Floats:
    gold, parsed = items.gold, items.parsed
    if part.kind == "set":
        counts = [np.bitwise_count(masks) for masks in (gold & parsed, parsed, gold)] + [parsed > 0]
    elif part.kind == "diagnosis":
        counts = [masks >> bit & 1 for masks in (gold & parsed, parsed, gold) for bit in part.classes]
    else:
        counts = [gold == parsed, np.ones(len(gold)), parsed > _NORMAL, parsed > 0]
    return _by_unit(counts, items.patient, units)


def _of_reports(reports: Reports, units: int) -> Floats:
    counts = [reports.counts[:, reports.names.index(name)] for name in ("tp", "fp", "fn")]
    return _by_unit(counts, reports.patient, units)


def _by_unit(counts: Sequence[np.ndarray], unit: Ints, units: int) -> Floats:
    return np.stack([np.bincount(unit, weights=count, minlength=units) for count in counts])


def claimed_statistics(parts: Sequence[Part], sums: Sequence[Floats], min_n: int) -> dict[Key, Floats]:
    """Compute the statistics that sentences may claim, as fractions, from sums (cell, unit) of every part.

    `primary` at every scope, and on tier 1 EXTRA_METRICS: the values of `aggregates.arm_statistics`.
    """
    values = {part: _OF_KIND[part.kind](cells) for part, cells in zip(parts, sums, strict=True)}
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
    return statistics


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


def _of_gates(cells: Floats) -> dict[str, Floats]:
    return _of_choices(cells) | {"abnormal_call": ratio(cells[2], cells[3])}


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
    "gate": _of_gates,
    "diagnosis": _of_diagnoses,
    "report": _of_entities,
}
