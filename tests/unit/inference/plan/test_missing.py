"""What is missing is found as by one pass over all requests in order."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

from cardiolens.inference.plan.missing import missing
from cardiolens.storage import tables
from cardiolens.storage.schemas import COMPLETIONS, FINAL, PLANNED, REQUESTS

TRIES = 2


def in_one_pass(
    parts: list[Path], said: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    final = {row["request_key"] for row in said if row["status"] in FINAL}
    failed = Counter(row["request_key"] for row in said if row["status"] not in FINAL)
    seen: set[str] = set()
    work: list[dict[str, Any]] = []
    for part in parts:
        of_part: dict[str, dict[str, Any]] = {}
        for number, row in enumerate(tables.read_part(part, REQUESTS).to_pylist()):
            key, study = row["request_key"], row["frames_study_id"] or ""
            if row["status"] != PLANNED or key in seen:
                continue
            seen.add(key)
            if key not in final and failed[key] < TRIES:
                empty: dict[str, Any] = {"study_id": study, "part": str(part), "rows": [], "attempts": []}
                of_study = of_part.setdefault(study, empty)
                of_study["rows"].append(number)
                of_study["attempts"].append(failed[key] + 1)
        work += of_part.values()
    exhausted = sum(failed[key] >= TRIES for key in seen - final)
    return work, (len(seen), len(seen & final), exhausted)


def test_what_is_missing_is_what_one_pass_over_the_rows_finds(tmp_path: Path) -> None:
    dice = random.Random(21)
    keys = [f"{dice.getrandbits(128):032x}" for _ in range(120)]
    for number in range(6):
        rows: list[dict[str, object]] = [
            {
                "arm_id": f"arm{dice.randrange(3)}",
                "frames_study_id": dice.choice([f"s{number}", f"s{number + 1}", None]),
                "status": dice.choice([PLANNED] * 5 + ["overflow"]),
                "request_key": dice.choice(keys),
            }
            for _ in range(40)
        ]
        name = f"part-{number:05d}.parquet"
        tables.write_part(tmp_path / "requests", tables.from_rows(rows, REQUESTS), REQUESTS, name)
    said: list[dict[str, Any]] = [
        {
            "request_key": dice.choice([*keys, "of another sweep"]),
            "status": dice.choice(["ok", "engine_error"]),
        }
        for _ in range(90)
    ]
    for first in range(0, len(said), 7):
        tables.write_part(
            tmp_path / "said", tables.from_rows(said[first : first + 7], COMPLETIONS), COMPLETIONS
        )
    found = missing(tmp_path / "requests", tmp_path / "said", TRIES)
    work, totals = in_one_pass(tables.parts(tmp_path / "requests"), said)
    assert all(totals)
    assert (found.unique, found.done, found.exhausted) == totals
    assert found.work.to_pylist() == work


def test_nothing_planned_is_nothing_missing(tmp_path: Path) -> None:
    found = missing(tmp_path / "requests", tmp_path / "said", TRIES)
    assert (found.unique, found.left, found.work.num_rows) == (0, 0, 0)
