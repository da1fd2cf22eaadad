"""Below what counts a number stands without an interval, and no sentence rests on it (amendment 17.1)."""

from typing import Any

import numpy as np
import pytest

from cardiolens.score.statistics.bootstrap import FEWEST_FOR_INTERVAL, FEWEST_OF_CLASS, resampling_weights
from cardiolens.score.statistics.confidence import confidence_scores
from cardiolens.score.statistics.statistic import Basis, Statistic, as_row
from cardiolens.storage.schemas import COMPLETIONS, REQUESTS, VERDICTS
from cardiolens.storage.tables import from_rows


def of_patients(patients: int) -> dict[str, object]:
    weights = resampling_weights(patients, 200, 1)
    right = np.arange(patients) % 2 == 0
    statistic = Statistic(weights @ right / patients, Basis(patients, patients, 0, 0))
    return as_row(("accuracy", "tier:1"), statistic, "bootstrap")


def test_a_number_of_fewer_than_eight_patients_stands_alone() -> None:
    few, enough = of_patients(FEWEST_FOR_INTERVAL - 1), of_patients(FEWEST_FOR_INTERVAL)
    assert few["value"] == pytest.approx(100 * 4 / 7)
    assert np.isnan([few["low"], few["high"]]).all()
    assert (few["n_patients"], few["method"]) == (7, "no interval: fewer than 8 patients")
    assert float(str(enough["low"])) < 50 < float(str(enough["high"]))


def separated(positive: int, patients: int = 60) -> list[dict[str, Any]]:
    """Scores of a reader that always gives the right answer the higher probability, save to one patient."""
    verdicts: list[dict[str, Any]] = []
    completions: list[dict[str, Any]] = []
    for patient in range(patients):
        gold = "B" if patient < positive else "A"
        names = {"qa_id": f"p{patient}:L01", "request_key": f"k{patient}", "patient_id": f"p{patient}"}
        fixed = {"arm_id": "arm", "channel": "answer", "tier": 1, "sequence": "lge", "subtask": "L01"}
        fixed |= {"answer_type": "single", "status": "judged", "parse_status": "ok"}
        verdicts.append(fixed | names | {"parsed": [gold], "gold": [gold]})
        share = 0.45 if patient == positive else 0.9 if gold == "B" else 0.1 + patient / 1000
        logs = [("A", np.log(1 - share)), ("B", np.log(share - 0.5 * (patient == 0)))]
        completions.append({"request_key": names["request_key"], "option_logprobs": logs})
    asked = [{"arm_id": "arm", "qa_id": row["qa_id"], "option_keys": ["A", "B"]} for row in verdicts]
    tables = from_rows(verdicts, VERDICTS), from_rows(asked, REQUESTS), from_rows(completions, COMPLETIONS)
    return confidence_scores(*tables, 300, 1).to_pylist()


@pytest.mark.parametrize("positive", [3, FEWEST_OF_CLASS - 1, FEWEST_OF_CLASS])
def test_auroc_needs_ten_patients_of_the_rarer_class(positive: int) -> None:
    scores = separated(positive)
    (row,) = [row for row in scores if row["metric"] == "auroc"]
    assert row["value"] > 90
    assert (row["n_items"], row["n_positive"], row["n_rarer_class"]) == (60, positive, positive)
    assert np.isnan(row["low"]) == (positive < FEWEST_OF_CLASS)
    assert ("fewer than 10 patients of the rarer class" in row["method"]) == (positive < FEWEST_OF_CLASS)
