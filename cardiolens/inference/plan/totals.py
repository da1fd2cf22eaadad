"""Count the requests, frames and tokens of one model from its written plan."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.placement.footprint import CHOICE_TOKENS, REPLY_SHARE
from cardiolens.inference.plan.few_shot import has_examples, read_example_frames
from cardiolens.inference.plan.missing import (
    SHOWN,
    beginnings,
    frames_of,
    prefix_order,
    shared_frames,
)
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.protocol.prompts.frames import has_videos
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import OVERFLOW, PLANNED

_COLUMNS = (*SHOWN, "answer_format", "max_tokens", "stage", "status", "predicted_tokens", "request_key")
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
    # estimates: prompt tokens that no earlier prompt begins with; tokens of the replies, by their kind;
    computed_tokens: int | None = None
    reply_tokens: int | None = None
    encoder_tokens: int = 0  # and tokens of `encoder_frames`, each once
    encoder_frames: int = 0  # distinct frames, those of examples, too, and each frame again in each video

    @property
    def frame_tokens(self) -> int:
        """Return the tokens of a frame with its caption; 0 without frames or tokens."""
        return self.encoder_tokens // self.encoder_frames if self.encoder_frames else 0


def totals_of(requests: Path) -> Totals:
    """Count the plan of one model part by part; counts add up because each study lies in a single part."""
    sums: Counter[str] = Counter()
    estimates: dict[str, float] = defaultdict(float)
    has_tokens = False
    lent: set[tuple[str, str, int]] = set()  # frames of examples, which requests of all parts show
    for part in tables.parts(requests):
        table = tables.read_part(part, schemas.REQUESTS, _COLUMNS)
        planned = table.filter(pc.equal(table["status"], PLANNED))
        unique = _first_of_each_key(planned)
        has_tokens |= unique["predicted_tokens"].null_count < unique.num_rows
        stages, tokens = 1 + _numbers(unique, "stage"), _numbers(unique, "predicted_tokens")
        most, is_choice = _numbers(unique, "max_tokens"), pc.equal(unique["answer_format"], "choice")
        replies = np.where(np.asarray(is_choice), np.minimum(most, CHOICE_TOKENS), REPLY_SHARE * most)
        examples = _examples(part, unique)
        shown_first = {(study_id, *frame) for frames in examples for study_id, frame in frames}
        shown = _shown(unique)
        n_encoded = shown.group_by(shown.column_names).aggregate([]).num_rows + len(shown_first - lent)
        n_overflow = pc.sum(pc.equal(table["status"], OVERFLOW)).as_py() or 0
        sums.update(
            asked=table.num_rows,
            overflow=n_overflow,
            skipped=table.num_rows - planned.num_rows - n_overflow,
            frames_referenced=shown.num_rows,
            frames_distinct=shown.group_by(["study", "volume", "idx"]).aggregate([]).num_rows,
            sent=int(stages.sum()),
            prompt_tokens=int(stages @ tokens),
            output_tokens=int(stages @ most),
            encoder_frames=n_encoded,
        )
        estimates["computed_tokens"] += _computed(unique, stages, tokens)
        estimates["reply_tokens"] += stages @ replies
        estimates["encoder_tokens"] += n_encoded * _frame_tokens(unique, tokens, examples)
        lent |= shown_first
    of = {name: round(value) for name, value in estimates.items()}
    names = ("asked", "overflow", "skipped", "frames_referenced", "frames_distinct", "sent", "output_tokens")
    return Totals(
        **{name: sums[name] for name in names},
        prompt_tokens=sums["prompt_tokens"] if has_tokens else None,
        computed_tokens=of.get("computed_tokens", 0) if has_tokens else None,
        reply_tokens=of.get("reply_tokens", 0),
        encoder_tokens=of.get("encoder_tokens", 0),
        encoder_frames=sums["encoder_frames"],
    )


def _numbers(table: pa.Table, column: str) -> np.ndarray:
    return np.asarray(pc.fill_null(table[column], 0), dtype=np.int64)


def _computed(requests: pa.Table, stages: np.ndarray, tokens: np.ndarray) -> float:
    """Estimate the prompt tokens that are computed if every beginning is computed once.

    A prompt counts as equal parts: each frame with its caption is one, and all text behind the last frame
    is one. Later stages of a chain compute that last part again.
    """
    rows = beginnings(requests)
    order = prefix_order(rows)
    n_frames = frames_of(rows)[order]
    new = n_frames - shared_frames(rows[order])
    return float((tokens[order] * (new + stages[order]) / (n_frames + 1)).sum())


def _frame_tokens(requests: pa.Table, tokens: np.ndarray, examples: Sequence[_ExampleFrames]) -> float:
    """Estimate the tokens of a frame from prompts with frames, by the equal parts of `_computed`.

    The frames of `examples`, one entry a request, are parts of its prompt, too.
    """
    n_frames = np.asarray(pc.list_value_length(requests["frames"]), dtype=float)
    n_frames += [len(frames) for frames in examples]
    parts = (n_frames + 1)[n_frames > 0].sum()
    return float(tokens[n_frames > 0].sum() / parts) if parts else 0.0


def _first_of_each_key(table: pa.Table) -> pa.Table:
    keyed = table.select(["request_key"]).append_column("row", pa.array(range(table.num_rows)))
    return table.take(keyed.group_by("request_key").aggregate([("row", "min")])["row_min"])


def _examples(part: Path, requests: pa.Table) -> list[_ExampleFrames]:
    """Return the frames of examples of each request, in the order of the rows."""
    flags = requests["flags"].to_pylist()
    by_request = read_example_frames(part) if any(map(has_examples, flags)) else {}
    return [by_request.get(key, ()) for key in requests["request_key"].to_pylist()]


def _shown(requests: pa.Table) -> pa.Table:
    """Return one row per frame of each request; an encoder sees a frame anew in each video."""
    lists = requests["frames"].combine_chunks()
    parents = pc.list_parent_indices(lists)
    filmed = [
        repr(lists[row].as_py()) if has_videos(flags) else ""
        for row, flags in enumerate(requests["flags"].to_pylist())
    ]
    return pa.table(
        {
            "study": requests["frames_study_id"].take(parents),
            "volume": lists.flatten().field("volume_id"),
            "idx": lists.flatten().field("idx"),
            "filmed": pa.array(filmed, pa.string()).take(parents),
        }
    )
