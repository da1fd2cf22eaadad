"""Benchmark of judging: verdicts per second on one core, for constrained and for free replies.

python -m bench.judge            # 400,000 verdicts
"""

import argparse
import random
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage.schemas import COMPLETIONS, QUESTIONS, REQUESTS
from cardiolens.storage.tables import from_rows

TEXTS = ("Basal segment", "Mid segment", "Apical segment", "Apex", "Papillary muscle")
OPTIONS = [{"key": key, "text": text} for key, text in zip("ABCDE", TEXTS, strict=True)]


def cohort(studies: int, subtasks: int) -> pa.Table:
    """Multi-select questions, several per study."""
    dice = random.Random(2026)
    rows = [
        {
            "qa_id": f"s{study}:X{subtask}",
            "study_id": f"s{study}",
            "patient_id": f"p{study}",
            "tier": 1,
            "subtask": f"X{subtask}",
            "sequence": "lge",
            "answer_type": "multi",
            "options": OPTIONS,
            "exclusive": [],
            "answer": sorted(dice.sample("ABCDE", dice.randint(1, 3))),
        }
        for study in range(studies)
        for subtask in range(subtasks)
    ]
    return from_rows(rows, QUESTIONS)


def asked(questions: pa.Table, arms: int) -> pa.Table:
    """Every question in every arm."""
    rows: list[dict[str, object]] = [
        {"arm_id": f"arm{arm}", "qa_id": qa_id, "request_key": f"{arm}/{qa_id}", "status": "planned"}
        for arm in range(arms)
        for qa_id in questions["qa_id"].to_pylist()
    ]
    return from_rows(rows, REQUESTS)


def said(requests: pa.Table, free: bool) -> pa.Table:
    """One reply per request: letters, or a paragraph that differs from every other reply."""
    dice = random.Random(7)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows: list[dict[str, object]] = []
    for number, key in enumerate(requests["request_key"].to_pylist()):
        letters = ", ".join(sorted(dice.sample("ABCDE", dice.randint(1, 3))))
        text = f"{'The wall is bright here. ' * 20}({number})\nANSWER: {letters}" if free else letters
        rows.append(
            {
                "request_key": key,
                "text": text,
                "status": "ok",
                "finish_reason": "stop",
                "written_at": start + timedelta(seconds=number),
            }
        )
    return from_rows(rows, COMPLETIONS)


def main() -> None:
    """Time `judge` on both kinds of reply."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--studies", type=int, default=670)
    arguments.add_argument("--subtasks", type=int, default=29)
    arguments.add_argument("--arms", type=int, default=24)
    given = arguments.parse_args()
    pa.set_cpu_count(1)
    questions = cohort(given.studies, given.subtasks)
    for kind, arms in (("choice", given.arms), ("free", max(1, given.arms // 12))):
        requests = asked(questions, arms)
        completions = said(requests, free=kind == "free")
        start = time.perf_counter()
        verdicts = judge(requests, completions, questions)
        seconds = time.perf_counter() - start
        rate = verdicts.num_rows / seconds
        print(f"{kind}: {verdicts.num_rows} verdicts in {seconds:.1f} s = {rate:,.0f} a second")


if __name__ == "__main__":
    main()
