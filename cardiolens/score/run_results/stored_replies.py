"""The stored replies of a run: whether they are all there, what computed them, and joined to requests."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of_rows
from cardiolens.base.errors import InputError
from cardiolens.score.verdicts.final_completions import duplicates, finals
from cardiolens.storage import documents, tables
from cardiolens.storage.places import Run, Store, store_of
from cardiolens.storage.schemas import COMPLETIONS, FINAL, PLANNED, QUESTIONS, REQUESTS, VERDICTS

_AT_ONCE = 4_096  # questions that are Python objects at a time
NUMERICS = ("engine", "device", "attention_backend", "tensor_parallel")
"""Columns of completions; the same request may have another answer where one of them differs."""
BLOCK = 2**16  # requests from which a block is full
_REQUEST_COLUMNS = (
    *("arm_id", "qa_id", "answer_type", "option_keys", "exclusive"),
    *("stage", "status", "request_key"),
)
_COMPLETION_COLUMNS = ("request_key", "status", "text", "finish_reason", "option_logprobs", "written_at")


def check_stored(run: Run) -> Store:
    """Return a run's store; InputError unless it has the run's questions and all replies that were judged.

    Who joins verdicts with replies would otherwise write nothing in the place of what is gone.
    """
    spec, manifest = documents.read_configuration(run), documents.read_manifest(run)
    store = store_of(run, spec)
    questions_of(run, store, manifest["models"], manifest["questions_digest"])
    for model, facts in manifest["models"].items():
        arms = [arm["arm_id"] for arm in manifest["arms"] if arm["model"] == model]
        _check_replies(run, store.completions(facts["model_key"]), arms)
    return store


def questions_of(
    run: Run, store: Store, models: Iterable[str], recorded: str | None = None
) -> tuple[pa.Table, str]:
    """The questions that models of a run were asked, with their digest.

    InputError if a model has no requests, or if the digest is not the `recorded` one.
    """
    questions, asked = tables.read(store.questions, QUESTIONS), pa.array([], pa.string())
    for requests in map(run.requests, models):
        qa_ids = tables.from_parts(
            requests, REQUESTS, ("qa_id",), lambda parts: [pc.unique(part["qa_id"]) for part in parts]
        )
        if not any(map(len, qa_ids)):
            raise InputError(f"{requests}: holds no requests; plan the run again (mode=plan)")
        asked = pc.unique(pa.concat_arrays([asked, *qa_ids]))
    questions = questions.filter(pc.is_in(questions["qa_id"], asked))
    batches = questions.sort_by("qa_id").to_batches(max_chunksize=_AT_ONCE)
    digest = digest_of_rows(row for batch in batches for row in batch.to_pylist())
    if recorded not in (None, digest):
        raise InputError(
            f"{store.questions}: the questions of {run.root} have changed since it was judged; put the "
            "questions file of the run back and plan it again (mode=plan), or run the sweep again"
        )
    return questions, digest


def _check_replies(run: Run, completions: Path, arms: list[str]) -> None:
    """Refuse a judged verdict of some arms without a completion in the store."""
    of_arms = pc.field("arm_id").isin(pa.array(arms, pa.string())) & (pc.field("status") == "judged")
    judged = pc.unique(tables.query(run.verdicts, VERDICTS, ("request_key",), of_arms)["request_key"])
    stored = _final_of(completions, judged, ("request_key", "status"))["request_key"]
    if gone := len(judged) - len(pc.unique(stored)):
        raise InputError(
            f"{completions}: lacks {gone:,} of the {len(judged):,} replies that {run.root} was judged from; "
            "put it back as it was, or add store=... with the folder where the store of the run is now"
        )


def _final_of(folder: Path, keys: pa.Array, columns: tuple[str, ...]) -> pa.Table:
    """The final completions of some requests."""
    rows = of_keys(tables.read(folder, COMPLETIONS, columns), keys)
    return rows.filter(pc.is_in(rows["status"], value_set=pa.array(FINAL)))


def numerics_of(requests: Path, completions: Path) -> list[dict[str, Any]]:
    """Count the answered requests of one model by their numerics, the most frequent first."""
    keys = tables.read(requests, REQUESTS, ("request_key",))["request_key"]
    rows = _final_of(completions, keys, ("request_key", "status", *NUMERICS))
    counted = rows.group_by(list(NUMERICS)).aggregate([("request_key", "count_distinct")])
    records = counted.rename_columns([*NUMERICS, "requests"]).to_pylist()
    return sorted(records, key=lambda record: (-record["requests"], str(record)))


def phrase(record: dict[str, Any]) -> str:
    """Return one set of numerics and its number of requests as a phrase."""
    size = record["tensor_parallel"]
    parts = [record[name] for name in NUMERICS[:3]] + [size and f"tensor parallel {size}"]
    return f"{', '.join(part or 'unknown' for part in parts)} ({record['requests']:,} requests)"


@dataclass(frozen=True, slots=True)
class AlignedCompletions:
    """The completions of a model's requests, and counts over all distinct requests."""

    requests: Path
    counts: Counter[str]  # by how planned requests ended; agreeing and disagreeing doubles
    completions: pa.Table = field(repr=False)  # of the requests, in order of arrival
    others: pa.Table = field(repr=False)  # of stages, of second turns, and of other runs

    def blocks(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield blocks of at least BLOCK requests and all their completions, which blocks may share."""
        waiting: list[pa.Table] = []
        paths = tables.parts(self.requests)
        for path in paths:
            waiting.append(tables.read_part(path, REQUESTS, _REQUEST_COLUMNS))
            if path == paths[-1] or sum(part.num_rows for part in waiting) >= BLOCK:
                requests = pa.concat_tables(waiting)
                yield requests, of_keys(self.completions, requests["request_key"])
                waiting = []


def align_completions(requests: Path, completions: Path) -> AlignedCompletions:
    """Join a folder's completions to its requests."""
    asked = tables.read(requests, REQUESTS, ("request_key", "status"))
    replies = tables.read(completions, COMPLETIONS, _COMPLETION_COLUMNS)
    is_requested = pc.is_in(replies["request_key"], pc.unique(asked["request_key"]))
    requested = replies.filter(is_requested)
    planned = pc.unique(asked.filter(pc.equal(asked["status"], PLANNED))["request_key"])
    others = replies.drop_columns(["option_logprobs"]).filter(pc.invert(is_requested))
    return AlignedCompletions(requests, _count_endings(len(planned), requested), requested, others)


def of_keys(completions: pa.Table, keys: pa.ChunkedArray | pa.Array) -> pa.Table:
    """The completions of some requests."""
    return completions.filter(pc.is_in(completions["request_key"], pc.unique(keys)))


def item_of(rows: pa.Table) -> pa.ChunkedArray:
    """The arm and question of each row, as one key."""
    return pc.binary_join_element_wise(rows["arm_id"], rows["qa_id"], "\x1f")


def _count_endings(n_planned: int, completions: pa.Table) -> Counter[str]:
    """Count distinct planned requests by how they ended: a final status, `engine_error` or `missing`."""
    final, surplus = finals(completions), duplicates(completions)
    n_attempted = len(pc.unique(completions["request_key"]))
    return Counter(
        {
            **Counter(final["status"].to_pylist()),
            "engine_error": n_attempted - final.num_rows,
            "missing": n_planned - n_attempted,
            "agreeing": surplus.agreeing,
            "disagreeing": surplus.disagreeing,
        }
    )
