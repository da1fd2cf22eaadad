"""Tier 2: scores of reports by sequence, and their macro means (protocol 3.3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.score.statistics import report_metrics
from cardiolens.score.statistics.items import Bools, Floats, Ints, count, hospitals_of, patient_rows, strings
from cardiolens.score.statistics.name_codes import Vocabulary, join_lists, number_in, number_of
from cardiolens.score.statistics.references import skill
from cardiolens.score.statistics.report_metrics import ENTITY_COUNTS, TEXT_COUNTS, Sums, optional_metrics
from cardiolens.score.statistics.report_references import (
    Forms,
    best_constant_report,
    option_flags,
    report_guess_scores,
)
from cardiolens.score.statistics.statistic import Basis, Key, Statistic, mean_of

PRIMARY = "entity_f1"
_PRIMARY_AND_REFERENCES = (PRIMARY, *(f"{PRIMARY}.{name}" for name in ("uniform", "prevalence", "constant")))
NAMES = tuple(dict.fromkeys((*ENTITY_COUNTS, *TEXT_COUNTS)))
_CHANNELS: dict[str, Callable[[Sums], dict[str, Floats]]] = {
    "fields": report_metrics.of_fields,
    "text": report_metrics.of_text,
}


@dataclass(frozen=True, slots=True)
class Reports:
    """Channels of reports, sorted by (arm, subtask, patient, question, channel)."""

    arm: NDArray[np.str_]
    subtask: NDArray[np.str_]
    channel: NDArray[np.str_]
    parse_status: NDArray[np.str_]
    question: Ints  # code of the qa_id in the vocabulary
    request: Ints  # code of the request_key
    patient: Ints
    hospital: Ints  # code of the patient's hospital; -1 where hospitals are not random (17.12)
    counts: Floats  # (row, name in names)
    parsed: Ints  # code of the set of named entities
    gold: Bools  # (row, name in entities)
    predicted: Bools  # (row, name in entities)
    judged: Bools  # whether there was a reply to judge
    names: tuple[str, ...]
    entities: tuple[str, ...]  # as named in verdicts, e.g. "lv_size: Normal size"

    @staticmethod
    def of(
        verdicts: pa.Table, patients: list[str], vocabulary: Vocabulary, hospitals: Ints | None = None
    ) -> "Reports":
        """Read the reports of a table of verdicts, judged or not."""
        report = pc.is_in(verdicts["channel"], value_set=pa.array(list(_CHANNELS)))
        report_rows = verdicts.filter(report)
        order = [(name, "ascending") for name in ("arm_id", "subtask", "patient_id", "qa_id", "channel")]
        rows = report_rows.sort_by(order).combine_chunks()
        names = (*NAMES, *optional_metrics(vocabulary.counts))
        counts = {name: count(rows, name) for name in names}
        lengths = (counts["lcs"], counts["words"], counts["reference_words"])
        counts["reports"] = np.ones(len(rows))
        counts["rouge_l"] = np.nan_to_num(report_metrics.rouge_l(*lengths))
        entities = vocabulary.entities
        patient = patient_rows(rows["patient_id"], patients)
        return Reports(
            arm=strings(rows["arm_id"]),
            subtask=strings(rows["subtask"]),
            channel=strings(rows["channel"]),
            parse_status=strings(rows["parse_status"]),
            question=number_in(rows["qa_id"], vocabulary.questions),
            request=number_of(rows["request_key"]),
            patient=patient,
            hospital=hospitals_of(patient, hospitals),
            counts=np.stack([counts[name] for name in names], axis=-1),
            parsed=number_of(join_lists(rows["parsed"])),
            gold=_flags(rows["gold"], entities),
            predicted=_flags(rows["parsed"], entities),
            judged=np.asarray(pc.equal(rows["status"], "judged"), np.bool_),
            names=names,
            entities=entities,
        )

    def basis(self, note: str = "") -> Basis:
        """Count the rows and the entities of their references."""
        return replace(Basis.of(self, note), n_entities=int(self.gold.sum()))

    def __len__(self) -> int:
        return len(self.patient)

    def where(self, selection: Bools | slice) -> "Reports":
        """Select rows by a mask or a slice."""
        rows = [field.name for field in fields(self) if field.name not in ("names", "entities")]
        return replace(self, **{name: getattr(self, name)[selection] for name in rows})


def report_statistics(reports: Reports, weights: Floats, seed: int, forms: Forms) -> dict[Key, Statistic]:
    """Scores of each report subtask; their unweighted means over sequences are those of tier 2.

    `primary` repeats `entity_f1`, with the references of 8.3 where `forms` holds the subtask.
    """
    statistics: dict[Key, Statistic] = {}
    for channel, of_sums in _CHANNELS.items():
        rows = reports.where(reports.channel == channel)
        by_subtask = {}
        for subtask in map(str, np.unique(rows.subtask)):
            of_subtask = rows.where(rows.subtask == subtask)
            by_subtask[subtask] = _statistics(of_subtask, weights, of_sums)
            if channel == "fields" and subtask in forms:
                by_subtask[subtask] |= _references(subtask, of_subtask, weights, seed, forms)
        basis = rows.basis(f"mean over {' '.join(by_subtask)}")
        for metric in next(iter(by_subtask.values()), {}):
            parts = {subtask: of_metrics[metric] for subtask, of_metrics in by_subtask.items()}
            statistics |= {(metric, f"subtask:{subtask}"): part for subtask, part in parts.items()}
            statistics[metric, "tier:2"] = mean_of(parts, basis)
    statistics |= {
        (metric.replace(PRIMARY, "primary"), scope): statistic
        for (metric, scope), statistic in statistics.items()
        if metric in _PRIMARY_AND_REFERENCES
    }
    return statistics | _skills(statistics)


def _statistics(
    rows: Reports, weights: Floats, of_sums: Callable[[Sums], dict[str, Floats]]
) -> dict[str, Statistic]:
    sums = _sums(rows, weights)
    basis = rows.basis()
    return {metric: Statistic(values, basis) for metric, values in of_sums(sums).items()}


def _sums(rows: Reports, weights: Floats) -> dict[str, Floats]:
    by_patient = np.zeros((weights.shape[1], len(rows.names)))
    np.add.at(by_patient, rows.patient, rows.counts)
    return dict(zip(rows.names, (weights @ by_patient).T, strict=True))


def _references(
    subtask: str, rows: Reports, weights: Floats, seed: int, forms: Forms
) -> dict[str, Statistic]:
    """References of `entity_f1` on the fields of one subtask."""
    form, sums, basis = forms[subtask], _sums(rows, weights), Basis.of(rows)
    gold = option_flags(form, rows.entities, rows.gold)
    right = sums["tp"] + sums["fn"]
    by_patient = np.zeros((weights.shape[1], gold.shape[1]))
    np.add.at(by_patient, rows.patient, gold)
    constant = best_constant_report(form, weights @ by_patient, sums["reports"], right)
    guesses = report_guess_scores(subtask, form, gold, float(right[0]), seed)
    values = {"constant": constant} | {name: np.array([mean]) for name, mean in guesses.items()}
    return {f"{PRIMARY}.{name}": Statistic(value, basis) for name, value in values.items()}


def _skills(statistics: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    return {
        ("primary.skill", scope): Statistic(
            skill(statistics["primary", scope].values, constant.values), constant.basis
        )
        for (metric, scope), constant in statistics.items()
        if metric == "primary.constant"
    }


def _flags(column: pa.ChunkedArray, names: tuple[str, ...]) -> Bools:
    """Flag which of the names each list holds."""
    lists = column.combine_chunks()
    flags = np.zeros((len(lists), len(names)), np.bool_)
    parent = np.asarray(pc.list_parent_indices(lists))
    flags[parent, np.asarray(pc.index_in(lists.flatten(), value_set=pa.array(names, pa.string())))] = True
    return flags
