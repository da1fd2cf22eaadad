"""Scores that are means over items of single arms, as rows: what the measures of replies have in common."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.statistics.counting import Key
from cardiolens.score.statistics.items import Bools, Floats, Ints
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Basis, Resampling, Row, Settings, Statistic, as_row
from cardiolens.score.statistics.verdict_rows import percent_judged
from cardiolens.storage.schemas import SCORES
from cardiolens.storage.tables import from_rows


@dataclass(frozen=True, slots=True)
class ItemScores:
    """Makes score rows from values of items, resampling the patients of one cohort."""

    sampling: Resampling
    patients: Mapping[str, int]  # their rows in the cohort

    @staticmethod
    def of(settings: Settings, patients: Iterable[str]) -> "ItemScores":
        """Resample sorted patients."""
        rows = {name: at for at, name in enumerate(patients)}
        return ItemScores(Resampling.of(settings, len(rows)), rows)

    def places(self, rows: Iterable[Mapping[str, Any]]) -> Ints:
        """The rows of the cohort that the patients of some items are."""
        return np.array([self.patients[row["patient_id"]] for row in rows], np.int64)

    def row(self, arm: str, key: Key, statistic: Statistic) -> dict[str, Any]:
        """The row of a statistic of an arm."""
        return {"arm_id": arm} | as_row(key, statistic, self.sampling.method)

    def mean(
        self, arm: str, metric: str, values: Floats | Bools, items: list[Row], note: str = ""
    ) -> dict[str, Any]:
        """The row of a mean over items of tier 1."""
        patient = self.places(items)
        status = np.array([row["parse_status"] for row in items], np.str_)
        basis = Basis.count(patient, status, note)
        means = item_mean(np.asarray(values, np.float64), patient, self.sampling.weights)
        return self.row(arm, (metric, "tier:1"), Statistic(means, basis))


def item_mean(values: Floats, patient: Ints, weights: Floats) -> Floats:
    """The mean over items in each resample of patients; NaN where it has none."""
    units = weights.shape[1]
    total = weights @ np.bincount(patient, weights=values, minlength=units)
    return ratio(total, weights @ np.bincount(patient, minlength=units).astype(np.float64))


def table_of(rows: Iterable[Mapping[str, Any]], shares: Mapping[Key, float]) -> pa.Table:
    """A table of score rows, each with the percentage of its items that was judged."""
    return from_rows(
        [{**row, "percent_judged": percent_judged(shares, row["arm_id"], row["scope"])} for row in rows],
        SCORES,
    )


def judged_answers(rows: pa.Table, **columns: object) -> list[dict[str, Any]]:
    """The judged answers to choice questions with some values in columns, without their counts."""
    for name, value in {"channel": "answer", "status": "judged", **columns}.items():
        rows = rows.filter(pc.fill_null(pc.equal(rows[name], value), False))
    answers: list[dict[str, Any]] = rows.drop_columns(["counts"]).to_pylist()
    return answers
