"""Count the requests, frames and tokens of one model from its written plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.placement.footprint import CHOICE_TOKENS, REPLY_SHARE
from cardiolens.inference.plan.few_shot import has_examples, read_example_frames
from cardiolens.inference.plan.prefix_order import beginnings, frames_of, prefix_order, shared_frames
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.protocol.prompts.frames import has_videos
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import OVERFLOW, PLANNED

_ExampleFrames = Sequence[tuple[str, FrameRef]]  # frames of examples with their studies


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the requests of one model; every stage of a chain counts the tokens of its last stage."""

    asked: int
    overflow: int
    skipped: int
    frames_referenced: int  # by distinct planned requests
    frames_distinct: int
    sent: int  # distinct planned requests, counting every stage of a chain: an upper bound
    prompt_tokens: int | None  # of the sent requests; None if the reader has no tokens
    output_tokens: int  # upper bound for the replies to the sent requests
    computed_tokens: int | None = (
        None  # of the prompt tokens, those that no earlier prompt begins with: estimated
    )
    reply_tokens: int | None = None  # expected, by the kind of reply
    encoder_tokens: int = 0  # of `encoder_frames`, each once: estimated
    encoder_frames: int = 0  # distinct frames, those of examples, too, and each frame again in each video

    @property
    def frame_tokens(self) -> int:
        """Return the tokens of a frame with its caption; 0 without frames or tokens."""
        return self.encoder_tokens // self.encoder_frames if self.encoder_frames else 0


def totals_of(requests: Path) -> Totals:
    """Count the plan of one model part by part; counts add up because each study lies in a single part."""
    sums = dict.fromkeys(
        (
            *("asked", "overflow", "skipped", "frames_referenced", "frames_distinct", "sent"),
            *("output_tokens", "encoder_frames"),
        ),
        0,
    )
    tokens: int | None = None
    computed = replies = encoded = 0.0
    lent: set[tuple[str, str, int]] = set()  # frames of examples, which requests of all parts show
    for part in tables.parts(requests):
        columns = (
            "frames_study_id",
            "system",
            "flags",
            "frames",
            "subtask",
            "answer_format",
            "max_tokens",
            "stage",
            "status",
            "predicted_tokens",
            "request_key",
        )
        table = tables.read_part(part, schemas.REQUESTS, columns)
        planned = table.filter(pc.equal(table["status"], PLANNED))
        overflow = pc.sum(pc.equal(table["status"], OVERFLOW)).as_py() or 0
        sums["asked"] += table.num_rows
        sums["overflow"] += overflow
        sums["skipped"] += table.num_rows - planned.num_rows - overflow
        unique = _first_of_each_key(planned)
        referenced, distinct = _frames(unique)
        sums["frames_referenced"] += referenced
        sums["frames_distinct"] += distinct
        stages = pc.add(unique["stage"], 1)
        sums["sent"] += pc.sum(stages).as_py() or 0
        sums["output_tokens"] += pc.sum(pc.multiply(unique["max_tokens"], stages)).as_py() or 0
        counted = pc.sum(pc.multiply(unique["predicted_tokens"], stages)).as_py()
        tokens = tokens if counted is None else (tokens or 0) + counted
        computed += _computed(unique)
        replies += _replies(unique)
        examples = _examples(part, unique)
        shown_first = {(study_id, *frame) for frames in examples for study_id, frame in frames}
        encoder_frames = _encoder_frames(unique) + len(shown_first - lent)
        sums["encoder_frames"] += encoder_frames
        encoded += encoder_frames * _frame_tokens(unique, examples)
        lent |= shown_first
    return Totals(
        **sums,
        prompt_tokens=tokens,
        computed_tokens=None if tokens is None else round(computed),
        reply_tokens=round(replies),
        encoder_tokens=round(encoded),
    )


def _computed(requests: pa.Table) -> float:
    """Estimate the prompt tokens that are computed if every beginning is computed once.

    A prompt counts as equal parts: each frame with its caption is one, and all text behind the last frame
    is one. Later stages of a chain compute that last part again.
    """
    rows = beginnings(requests)
    order = prefix_order(rows)
    n_frames = frames_of(rows)[order]
    new = n_frames - shared_frames(rows[order])
    tokens = np.asarray(pc.fill_null(requests["predicted_tokens"], 0), dtype=float)[order]
    stages = 1 + np.asarray(requests["stage"], dtype=float)[order]
    return float((tokens * (new + stages) / (n_frames + 1)).sum())


def _frame_tokens(requests: pa.Table, examples: Sequence[_ExampleFrames]) -> float:
    """Estimate the tokens of a frame from prompts with frames, by the equal parts of `_computed`.

    The frames of `examples`, one entry a request, are parts of its prompt, too.
    """
    n_frames = np.asarray(pc.list_value_length(requests["frames"]), dtype=float)
    n_frames += [len(frames) for frames in examples]
    tokens = np.asarray(pc.fill_null(requests["predicted_tokens"], 0), dtype=float)
    parts = (n_frames + 1)[n_frames > 0].sum()
    return float(tokens[n_frames > 0].sum() / parts) if parts else 0.0


def _replies(requests: pa.Table) -> float:
    """Return the expected tokens of the replies to all stages."""
    most = np.asarray(requests["max_tokens"], dtype=float)
    choice = np.asarray(pc.equal(requests["answer_format"], "choice"), dtype=bool)
    stages = 1 + np.asarray(requests["stage"], dtype=float)
    return float((stages * np.where(choice, np.minimum(most, CHOICE_TOKENS), REPLY_SHARE * most)).sum())


def _first_of_each_key(table: pa.Table) -> pa.Table:
    keyed = table.select(["request_key"]).append_column("row", pa.array(range(table.num_rows)))
    first = keyed.group_by("request_key").aggregate([("row", "min")])["row_min"]
    return table.take(first)


def _examples(part: Path, requests: pa.Table) -> list[_ExampleFrames]:
    """Return the frames of examples of each request, in the order of the rows."""
    flags = requests["flags"].to_pylist()
    by_request = read_example_frames(part) if any(map(has_examples, flags)) else {}
    keys = requests["request_key"].to_pylist()
    return [
        by_request.get(key, ()) if has_examples(row_flags) else ()
        for key, row_flags in zip(keys, flags, strict=True)
    ]


def _frames(requests: pa.Table) -> tuple[int, int]:
    """Return the number of frames of all requests, and of distinct ones."""
    places = _places(requests)
    return places.num_rows, places.group_by(["study", "volume", "idx"]).aggregate([]).num_rows


def _encoder_frames(requests: pa.Table) -> int:
    """Return the number of distinct frames for the encoder, which sees a frame anew in each video."""
    lists = requests["frames"].combine_chunks()
    filmed = [
        repr(lists[row].as_py()) if has_videos(flags) else ""
        for row, flags in enumerate(requests["flags"].to_pylist())
    ]
    places = _places(requests.append_column("filmed", pa.array(filmed, pa.string())), "filmed")
    return int(places.group_by(["study", "volume", "idx", "filmed"]).aggregate([]).num_rows)


def _places(requests: pa.Table, *further: str) -> pa.Table:
    """Return one row per frame of each request, with further columns of its request."""
    lists = requests["frames"].combine_chunks()
    flat = lists.flatten()
    parents = pc.list_parent_indices(lists)
    return pa.table(
        {
            "study": requests["frames_study_id"].take(parents),
            "volume": flat.field("volume_id"),
            "idx": flat.field("idx"),
            **{name: requests[name].take(parents) for name in further},
        }
    )
