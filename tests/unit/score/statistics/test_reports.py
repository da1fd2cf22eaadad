"""Report scores of protocol 3.3."""

from typing import Any

import numpy as np
import pytest

from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.metrics import bleu_4, of_entities
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.verdicts.text_metrics import overlap_counts
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows


def sums(**counts: float) -> dict[str, np.ndarray]:
    names = ("tp", "fp", "fn", "abnormal_tp", "abnormal_fp", "abnormal_fn", "gates", "contradicted")
    return {name: np.array([counts.get(name, 0.0)]) for name in names}


def test_no_entities_at_all_is_undefined_and_one_empty_side_is_zero() -> None:
    assert all(np.isnan(value).all() for value in of_entities(sums()).values())
    silent = of_entities(sums(fn=2))
    assert not any(silent[f"entity_{metric}"] for metric in ("precision", "recall", "f1"))


ARM = ("arm", "m", "clinical", "16", "standard")


def scored(rows: list[dict[str, object]], *arms: ArmFactors) -> list[dict[str, Any]]:
    return score(from_rows(rows, VERDICTS), arms, Settings(5, 20, 1)).scores.to_pylist()


def overlap(reference: str, hypothesis: str) -> dict[str, np.ndarray]:
    return {name: np.array([value]) for name, value in overlap_counts(reference, hypothesis).items()}


def test_bleu() -> None:
    assert bleu_4(overlap("a b c d e", "a b c d e")) == pytest.approx(1)
    assert bleu_4(overlap("a b", "c d")) == 0
    assert bleu_4(overlap("a b", "")) == 0
    assert np.isnan(bleu_4(overlap("", "a")))
    # 1-grams 3/4; with one added 2-grams 2/4, 3-grams 1/3, 4-grams 1/2; as long as the reference
    assert bleu_4(overlap("a b c x", "a b y c")) == pytest.approx((3 / 4 * 2 / 4 * 1 / 3 * 1 / 2) ** 0.25)
    # two words for four: brevity exp(1 - 4/2); the smoothed ratios are 1
    assert bleu_4(overlap("a b c d", "a b")) == pytest.approx(np.exp(-1))


def verdict(patient: str, subtask: str, channel: str, counts: dict[str, float]) -> dict[str, object]:
    return {
        "arm_id": "arm",
        "qa_id": f"{patient}:{subtask}",
        "channel": channel,
        "patient_id": patient,
        "tier": 2,
        "subtask": subtask,
        "answer_type": "report",
        "status": "judged",
        "parse_status": "ok",
        "parsed": [],
        "gold": [],
        "counts": list(counts.items()),
    }


def test_tier_two_is_the_macro_over_sequences_of_micro_f1() -> None:
    rows = [
        verdict("p1", "R-LGE", "fields", {"tp": 3, "fp": 1, "fn": 2, "fields": 5, "fields_equal": 2}),
        verdict("p2", "R-LGE", "fields", {"tp": 1, "fp": 0, "fn": 0, "fields": 5, "fields_equal": 5}),
        verdict("p1", "R-T2", "fields", {"tp": 0, "fp": 1, "fn": 1, "fields": 4, "fields_equal": 3}),
        verdict("p1", "R-LGE", "text", overlap_counts("a b c d", "a b")),
    ]
    scores = scored(rows)
    found = {(row["metric"], row["scope"]): row for row in scores}
    assert found["entity_f1", "subtask:R-LGE"]["value"] == pytest.approx(100 * 8 / 11)
    assert found["primary", "tier:2"]["value"] == pytest.approx(50 * 8 / 11)
    assert found["field_match", "subtask:R-LGE"]["value"] == 70
    assert found["rouge_l", "tier:2"]["value"] == pytest.approx(100 * 2 / 3)
    assert (found["primary", "tier:2"]["n_items"], found["primary", "tier:2"]["n_patients"]) == (3, 2)
    assert found["primary", "tier:2"]["method"].startswith("mean over R-LGE R-T2; no interval: fewer than 8")


def test_a_report_has_changed_where_its_fields_name_something_else() -> None:
    rows = []
    for number, patient in enumerate(("p1", "p2", "p3", "p4")):
        for arm in ("arm", "again"):
            changed = arm == "again" and number == 3
            named = {"parsed": ["level: Apex"] if changed else ["level: Basal", "region: Septal"]}
            rows.append(verdict(patient, "R-LGE", "fields", {"tp": 1}) | {"arm_id": arm} | named)
            # a text that differs is no other answer
            rows.append(verdict(patient, "R-LGE", "text", {"tp": 1}) | {"arm_id": arm, "parsed": [arm]})
    scores = scored(rows, ArmFactors(*ARM), ArmFactors("again", *ARM[1:], control="repeat"))
    (found,) = [row for row in scores if row["metric"] == "answers_changed"]
    assert (found["scope"], found["value"], found["n_items"]) == ("tier:2", 25, 4)


def test_the_worked_example_of_entities() -> None:
    found = of_entities(sums(tp=3, fp=1, fn=2, abnormal_tp=3, abnormal_fp=1, abnormal_fn=2, gates=1))
    assert found["entity_precision"] == pytest.approx(0.75)
    assert found["entity_recall"] == pytest.approx(0.6)
    assert found["entity_f1"] == pytest.approx(0.6667, abs=1e-4)
    assert found["hallucination"] == pytest.approx(0.25)
    assert found["omission"] == pytest.approx(0.4)
    assert found["contradiction"] == 0


def test_the_worked_example_of_rouge() -> None:
    reference = "there is subepicardial late enhancement in the basal and mid lateral wall"
    counts = overlap_counts(reference, "mid wall late enhancement in the mid lateral wall")
    scores = scored([verdict("p1", "R-LGE", "text", counts)])
    (rouge,) = [row for row in scores if (row["metric"], row["scope"]) == ("rouge_l", "tier:2")]
    assert rouge["value"] == pytest.approx(66.67, abs=1e-2)
