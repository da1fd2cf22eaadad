"""The order of requests: what two prompts share is computed for the one just before, whatever the frames."""

from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.inference.plan.candidates import totals_of
from cardiolens.inference.plan.few_shot import write_examples
from cardiolens.inference.plan.missing import beginnings, frames_of, missing, prefix_order, shared_frames
from cardiolens.inference.plan.request import ShownExample
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.storage import tables
from cardiolens.storage.schemas import PLANNED, REQUESTS

Shown = tuple[str, bool, tuple[tuple[str, int], ...]]  # system message, black, frames

frame = st.tuples(st.sampled_from(["cine", "lge"]), st.integers(0, 3))
shown = st.lists(
    st.tuples(st.sampled_from(["s", "t"]), st.booleans(), st.lists(frame, max_size=5).map(tuple)), max_size=30
)


def requests(prompts: list[Shown], **columns: object) -> pa.Table:
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
        for number, (system, black, frames) in enumerate(prompts)
    ]
    return tables.from_rows(rows, REQUESTS)


@settings(max_examples=60, deadline=None)
@given(shown)
def test_in_this_order_every_shared_beginning_is_computed_once(prompts: list[Shown]) -> None:
    rows = beginnings(requests(prompts))
    order = prefix_order(rows)
    assert sorted(order.tolist()) == list(range(len(prompts)))
    new = (frames_of(rows)[order] - shared_frames(rows[order])).sum() if len(order) else 0
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
    prompts: list[Shown] = [("s", False, frames)] * 4 + [("s", False, frames[:4])]
    table = requests(prompts).drop_columns("predicted_tokens")
    tokens = pa.array([1000, 1000, 1000, 1000, 500], pa.int32())
    at = REQUESTS.get_field_index("predicted_tokens")
    table = table.add_column(at, REQUESTS.field("predicted_tokens"), tokens)
    tables.write_part(tmp_path, table, REQUESTS, "part-00000.parquet")
    totals = totals_of(tmp_path)
    # Of equal parts of 100 tokens: nine frames and five texts, where 45 were asked.
    assert (totals.prompt_tokens, totals.computed_tokens, totals.encoder_tokens) == (4500, 1400, 900)
    assert totals.frame_tokens == 100
    assert (totals.output_tokens, totals.reply_tokens) == (5 * 64, 5 * 4)


def counted(prompts: list[Shown], tokens: int, flags: list[str]) -> pa.Table:
    """Requests of so many tokens each."""
    return requests(prompts, flags=flags, predicted_tokens=tokens, stage=0)


def test_frames_of_examples_are_parts_of_a_prompt_and_encoded_once(tmp_path: Path) -> None:
    frames = tuple(("cine", number) for number in range(9))
    plain, with_examples = tmp_path / "plain", tmp_path / "examples"
    tables.write_part(plain, counted([("s", False, frames)], 1000, []), REQUESTS, "part-00000.parquet")
    lent = [ShownExample(f"q{name}", name, tuple(FrameRef("cine", n) for n in range(9))) for name in "BC"]
    for number in range(2):  # both parts show the same examples
        part = with_examples / f"part-{number:05d}.parquet"
        shown = counted([("s", False, frames)], 2800, ["shots:2"])
        study = pa.array([f"A{number}"], pa.string())
        shown = shown.set_column(REQUESTS.get_field_index("frames_study_id"), "frames_study_id", study)
        tables.write_part(with_examples, shown, REQUESTS, part.name)
        write_examples(part, {"0": lent})
    assert totals_of(plain).frame_tokens == totals_of(with_examples).frame_tokens == 100
    totals = totals_of(with_examples)
    assert (totals.frames_distinct, totals.encoder_frames) == (2 * 9, 2 * 9 + 2 * 9)
    assert totals.encoder_tokens == 36 * 100


def test_a_frame_is_encoded_again_in_every_video(tmp_path: Path) -> None:
    frames = tuple(("cine", number) for number in range(4))
    table = pa.concat_tables(
        [
            counted([("s", False, frames), ("s", False, frames[:2])], 500, []),
            counted([("s", False, frames), ("s", False, frames), ("s", False, frames[:2])], 500, ["video:1"]),
        ]
    )
    keys = pa.array([str(number) for number in range(5)])
    table = table.set_column(REQUESTS.get_field_index("request_key"), "request_key", keys)
    tables.write_part(tmp_path, table, REQUESTS, "part-00000.parquet")
    totals = totals_of(tmp_path)
    assert (totals.frames_distinct, totals.encoder_frames) == (4, 4 + 4 + 2)
