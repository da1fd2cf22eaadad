"""What is missing: as by one pass over all requests in order, of named questions, and after failures."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.missing import missing, missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import run_of
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


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("small"), 4)


def qa_ids(root: Path, **changes: object) -> list[str]:
    planned = plan(sweep_spec(root, reader("uniform"), **changes))
    return sorted(set(tables.read(planned.run.requests("uniform"), schemas.REQUESTS)["qa_id"].to_pylist()))


def test_named_questions_are_asked_alone_in_a_run_of_their_own(root: Path) -> None:
    every = qa_ids(root)
    chosen = [every[0], every[-1]]
    assert qa_ids(root, item=chosen) == chosen
    assert qa_ids(root, item=chosen[0]) == chosen[:1]
    specs = [sweep_spec(root, reader("uniform"), **changes) for changes in ({}, {"item": chosen})]
    assert run_of(specs[0]).root != run_of(specs[1]).root


def test_an_item_that_is_not_asked_is_refused_with_the_nearest(root: Path) -> None:
    every = qa_ids(root)
    with pytest.raises(InputError, match=f"item: '{every[0]}x' is none of .*, e.g. {every[0]}"):
        qa_ids(root, item=[f"{every[0]}x"])
    with pytest.raises(InputError, match="widen subtask and limit"):
        qa_ids(root, item=[every[-1]], limit=1)
    first = every[0].split(":")[1]
    other = next(qa_id for qa_id in every if f":{first}" not in qa_id)
    with pytest.raises(InputError, match="widen subtask and limit"):
        qa_ids(root, item=[other], subtask=[first])


def test_a_request_that_failed_is_asked_again_up_to_the_attempts(root: Path) -> None:
    spec = sweep_spec(root, reader("uniform"), stream={"max_attempts": 4})
    assert run_of(spec).root == run_of(sweep_spec(root, reader("uniform"))).root, "the same run goes on"
    planned = plan(spec)
    requests = planned.run.requests("uniform")
    keys = tables.read(requests, schemas.REQUESTS)["request_key"].to_pylist()
    ok, failed = keys[0], keys[1]
    folder = planned.store.completions(planned.identities["uniform"].model_key)
    statuses = [(ok, "engine_error"), (ok, "ok"), *[(failed, "engine_error")] * 3]
    rows = [{"request_key": key, "status": status} for key, status in statuses]
    tables.write_part(folder, tables.from_rows(rows, schemas.COMPLETIONS), schemas.COMPLETIONS)
    assert missing_of(planned, "uniform").left == len(set(keys)) - 1
    usual = missing(requests, folder, 3)
    assert (usual.done, usual.exhausted, usual.left) == (1, 1, len(set(keys)) - 2)
