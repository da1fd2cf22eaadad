"""Tier 2: scores of reports by sequence, and their macro means (specification 3.3)."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.stats import report_metrics
from cardiolens.stats.items import Bools, Floats, Ints, count, patient_rows, strings
from cardiolens.stats.report_metrics import ENTITY_COUNTS, TEXT_COUNTS, Sums
from cardiolens.stats.statistic import Basis, Key, Statistic, mean_of

NAMES = tuple(dict.fromkeys((*ENTITY_COUNTS, *TEXT_COUNTS)))
_CHANNELS: dict[str, Callable[[Sums], dict[str, Floats]]] = {
    "fields": report_metrics.of_fields,
    "text": report_metrics.of_text,
}


@dataclass(frozen=True, slots=True)
class Reports:
    """Judged channels of reports, sorted by (arm, subtask, patient, question, channel)."""

    arm: NDArray[np.str_]
    qa_id: NDArray[np.str_]
    subtask: NDArray[np.str_]
    channel: NDArray[np.str_]
    request_key: NDArray[np.str_]
    parse_status: NDArray[np.str_]
    patient: Ints
    counts: Floats  # (row, name in NAMES)

    @staticmethod
    def of(verdicts: pa.Table, patients: list[str]) -> "Reports":
        """The judged reports of a table of verdicts."""
        report = pc.is_in(verdicts["channel"], value_set=pa.array(list(_CHANNELS)))
        chosen = verdicts.filter(pc.and_(report, pc.equal(verdicts["status"], "judged")))
        order = [(name, "ascending") for name in ("arm_id", "subtask", "patient_id", "qa_id", "channel")]
        rows = chosen.sort_by(order).combine_chunks()
        named = {name: count(rows, name) for name in NAMES}
        lengths = (named["lcs"], named["words"], named["reference_words"])
        named["reports"] = np.ones(len(rows))
        named["rouge_l"] = np.nan_to_num(report_metrics.rouge_l(*lengths))
        return Reports(
            arm=strings(rows["arm_id"]),
            qa_id=strings(rows["qa_id"]),
            subtask=strings(rows["subtask"]),
            channel=strings(rows["channel"]),
            request_key=strings(rows["request_key"]),
            parse_status=strings(rows["parse_status"]),
            patient=patient_rows(rows["patient_id"], patients),
            counts=np.stack([named[name] for name in NAMES], axis=-1),
        )

    def where(self, chosen: Bools) -> "Reports":
        """Some of the rows."""
        return Reports(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})


def report_statistics(reports: Reports, weights: Floats) -> dict[Key, Statistic]:
    """Scores of each report subtask, and their unweighted means over sequences as those of tier 2."""
    found: dict[Key, Statistic] = {}
    for channel, of_sums in _CHANNELS.items():
        rows = reports.where(reports.channel == channel)
        by_subtask = {
            str(subtask): _statistics(rows.where(rows.subtask == subtask), weights, of_sums)
            for subtask in np.unique(rows.subtask)
        }
        basis = Basis.of(rows, f"mean over {' '.join(by_subtask)}")
        for metric in next(iter(by_subtask.values()), {}):
            parts = {subtask: statistics[metric] for subtask, statistics in by_subtask.items()}
            found |= {(metric, f"subtask:{subtask}"): part for subtask, part in parts.items()}
            found[metric, "tier:2"] = mean_of(parts, basis)
    return found | {
        ("primary", scope): value for (metric, scope), value in found.items() if metric == "entity_f1"
    }


def _statistics(
    rows: Reports, weights: Floats, of_sums: Callable[[Sums], dict[str, Floats]]
) -> dict[str, Statistic]:
    by_patient = np.zeros((weights.shape[1], len(NAMES)))
    np.add.at(by_patient, rows.patient, rows.counts)
    sums = dict(zip(NAMES, (weights @ by_patient).T, strict=True))
    basis = Basis.of(rows)
    return {metric: Statistic(values, basis) for metric, values in of_sums(sums).items()}
