"""Verdicts that tests of statistics make up: one answer to a choice question each, and a cohort of them."""

import random
from typing import Any

import pyarrow as pa

from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows

KINDS = {"C10": ("ordinal", 4), "L01": ("single", 2), "L02": ("multi", 5), "P01": ("single", 2)}
KINDS |= {"D01": ("single", 3), "D02": ("single", 5)}
ASKED = ("C10", "L01", "L02", "D01", "D02")
SEQUENCES = {"C": "cine", "L": "lge", "P": "perfusion", "D": "all"}


def verdict(patient: str, subtask: str, gold: str, parsed: str, **changes: Any) -> dict[str, Any]:
    answer_type, size = KINDS[subtask]
    return {
        "arm_id": "arm",
        "qa_id": f"{patient}:{subtask}",
        "channel": "answer",
        "study_id": patient,
        "patient_id": patient,
        "tier": 3 if subtask.startswith("D") else 1,
        "sequence": SEQUENCES[subtask[0]],
        "subtask": subtask,
        "answer_type": answer_type,
        "request_key": f"{patient}:{subtask}",
        "status": "judged",
        "parse_status": "ok" if parsed else "parse_error",
        "parsed": list(parsed),
        "gold": list(gold),
        "correct": set(gold) == set(parsed),
        "counts": [("options", float(size))],
    } | changes


def of_arm(arm: str, patient: str, subtask: str, gold: str, parsed: str, **changes: Any) -> dict[str, Any]:
    """A verdict of an arm that shares no request with another."""
    names = {"arm_id": arm, "request_key": f"{arm}/{patient}/{subtask}"}
    return verdict(patient, subtask, gold, parsed, **(names | changes))


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return from_rows(rows, VERDICTS)


def cohort(patients: int, arms: str = "a", seed: int = 3) -> list[dict[str, Any]]:
    """Every patient answers every subtask in every arm, right more often than not."""
    dice = random.Random(seed)
    rows = []
    for number in range(patients):
        for subtask in ASKED:
            size = KINDS[subtask][1]
            gold = dice.choice("ABCDE"[:size])
            for arm in arms:
                parsed = gold if dice.random() < 0.6 else dice.choice(["", *"ABCDE"[:size]])
                rows.append(verdict(f"p{number:03d}", subtask, gold, parsed, arm_id=arm))
    return rows
