"""What is missing, after failures and of named questions too, and in what order it is asked."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cohort import reader, sweep_spec

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.candidates import totals_of
from cardiolens.inference.plan.few_shot import write_examples
from cardiolens.inference.plan.missing import (
    beginnings,
    missing,
    missing_of,
    prefix_order,
    shared_frames,
)
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.plan.request import ShownExample
from cardiolens.protocol.dialogue.chain import FrameRef
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


Shown = tuple[str, bool, tuple[tuple[str, int], ...]]  # system message, black, frames

frame = st.tuples(st.sampled_from(["cine", "lge"]), st.integers(0, 3))
shown = st.lists(
    st.tuples(st.sampled_from(["s", "t"]), st.booleans(), st.lists(frame, max_size=5).map(tuple)), max_size=30
)


def requests(prompts: list[Shown], first: int = 0, **columns: object) -> pa.Table:
    """Requests for prompts; the key of each is its number."""
    rows = [
        {
            "frames_study_id": "A",
            "system": system,
            "flags": ["short", "blank"] if black else ["short"],
            "frames": [{"volume_id": volume, "idx": idx} for volume, idx in frames],
            "status": PLANNED,
            "request_key": f"{number}",
            "stage": 0,
            "max_tokens": 64,
            "answer_format": "choice",
            **columns,
        }
        for number, (system, black, frames) in enumerate(prompts, first)
    ]
    return tables.from_rows(rows, REQUESTS)


@settings(max_examples=60, deadline=None)
@given(shown)
def test_in_this_order_every_shared_beginning_is_computed_once(prompts: list[Shown]) -> None:
    rows = beginnings(requests(prompts))
    order = prefix_order(rows)
    assert sorted(order.tolist()) == list(range(len(prompts)))
    n_frames = sum(len(frames) for _, _, frames in prompts)
    new = n_frames - shared_frames(rows[order]).sum() if len(order) else 0
    distinct = {
        (system, black, frames[:end])
        for system, black, frames in prompts
        for end in range(1, len(frames) + 1)
    }
    assert new == len(distinct)


def test_what_is_missing_is_asked_in_this_order_with_its_tries(tmp_path: Path) -> None:
    first, second = (("cine", 1),), (("lge", 1),)
    prompts: list[Shown] = [("s", False, first), ("s", False, second), ("s", False, (*first, ("cine", 2)))]
    tables.write_part(tmp_path / "requests", requests(prompts), REQUESTS, "part-00000.parquet")
    (row,) = missing(tmp_path / "requests", tmp_path / "completions", 1).work.to_pylist()
    assert row["rows"] == [0, 2, 1]
    assert row["attempts"] == [1, 1, 1]


def test_a_plan_counts_each_beginning_once_and_all_text_behind_frames(tmp_path: Path) -> None:
    frames = tuple(("cine", number) for number in range(9))
    whole = requests([("s", False, frames)] * 4, predicted_tokens=1000)
    shorter = requests([("s", False, frames[:4])], 4, predicted_tokens=500)
    tables.write_part(tmp_path, pa.concat_tables([whole, shorter]), REQUESTS, "part-00000.parquet")
    totals = totals_of(tmp_path)
    # Of equal parts of 100 tokens: nine frames and five texts, where 45 were asked.
    assert (totals.prompt_tokens, totals.computed_tokens, totals.encoder_tokens) == (4500, 1400, 900)
    assert totals.frame_tokens == 100
    assert (totals.output_tokens, totals.reply_tokens) == (5 * 64, 5 * 4)


def test_frames_of_examples_are_parts_of_a_prompt_and_encoded_once(tmp_path: Path) -> None:
    frames = tuple(("cine", number) for number in range(9))
    plain, with_examples = tmp_path / "plain", tmp_path / "examples"
    tables.write_part(
        plain,
        requests([("s", False, frames)], flags=[], predicted_tokens=1000),
        REQUESTS,
        "part-00000.parquet",
    )
    lent = [ShownExample(f"q{name}", name, tuple(FrameRef("cine", n) for n in range(9))) for name in "BC"]
    for number in range(2):  # both parts show the same examples
        part = with_examples / f"part-{number:05d}.parquet"
        told = {"flags": ["shots:2"], "predicted_tokens": 2800, "frames_study_id": f"A{number}"}
        shown = requests([("s", False, frames)], **told)
        tables.write_part(with_examples, shown, REQUESTS, part.name)
        write_examples(part, {"0": lent})
    assert totals_of(plain).frame_tokens == totals_of(with_examples).frame_tokens == 100
    totals = totals_of(with_examples)
    assert totals.encoder_frames == 2 * 9 + 2 * 9
    assert totals.encoder_tokens == 36 * 100


def test_a_frame_is_encoded_again_in_every_video(tmp_path: Path) -> None:
    frames = tuple(("cine", number) for number in range(4))
    one, half = ("s", False, frames), ("s", False, frames[:2])
    alone = requests([one, half], flags=[], predicted_tokens=500)
    filmed = requests([one, one, half], 2, flags=["video:1"], predicted_tokens=500)
    table = pa.concat_tables([alone, filmed])
    tables.write_part(tmp_path, table, REQUESTS, "part-00000.parquet")
    totals = totals_of(tmp_path)
    assert totals.encoder_frames == 4 + 4 + 2
