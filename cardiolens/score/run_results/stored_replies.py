"""The stored replies of a run: whether they are all there, what computed them, and joined to requests."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of_rows
from cardiolens.base.errors import InputError
from cardiolens.score.verdicts.final_completions import duplicates, finals
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, Store, store_of
from cardiolens.storage.schemas import COMPLETIONS, PLANNED, REQUESTS

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
    _check_questions(run, store, list(manifest["models"]), manifest["questions_digest"])
    arms: dict[str, list[str]] = {}
    for arm in manifest["arms"]:
        arms.setdefault(arm["model"], []).append(arm["arm_id"])
    for model, facts in manifest["models"].items():
        _check_replies(run, store, facts["model_key"], arms.get(model, []))
    return store


def _check_questions(run: Run, store: Store, models: list[str], recorded: str) -> None:
    qa_ids = (question_ids_of(run.requests(name)) for name in models)
    if digest_of_questions(questions_of(store, qa_ids)) != recorded:
        raise changed_questions(run, store)


def questions_of(store: Store, qa_ids: Iterable[pa.Array]) -> pa.Table:
    """The questions of a store with these ids."""
    questions = tables.read(store.questions, schemas.QUESTIONS)
    asked = pa.concat_arrays([pa.array([], pa.string()), *qa_ids])
    return questions.filter(pc.is_in(questions["qa_id"], pc.unique(asked)))


def question_ids_of(requests: Path) -> pa.Array:
    """The distinct questions of a model's requests; InputError if it has no requests."""
    qa_ids = tables.from_parts(
        requests,
        REQUESTS,
        ("qa_id",),
        lambda parts: pc.unique(
            pa.concat_arrays([pa.array([], pa.string()), *(pc.unique(part["qa_id"]) for part in parts)])
        ),
    )
    if not len(qa_ids):
        raise InputError(f"{requests}: holds no requests; plan the run again (mode=plan)")
    return qa_ids


def changed_questions(run: Run, store: Store) -> InputError:
    """The error that the store has other questions than a run was judged with."""
    return InputError(
        f"{store.questions}: the questions of {run.root} have changed since it was judged; put the questions "
        "file of the run back and plan it again (mode=plan), or run the sweep again"
    )


def _check_replies(run: Run, store: Store, model_key: str, arms: list[str]) -> None:
    """Refuse a judged verdict of some arms without a completion in the store."""
    of_model = pc.field("arm_id").isin(pa.array(arms, pa.string())) & (pc.field("status") == "judged")
    judged = pc.unique(
        tables.query(run.verdicts, schemas.VERDICTS, ("request_key",), of_model)["request_key"]
    )
    folder = store.completions(model_key)
    completions = tables.read(folder, schemas.COMPLETIONS, ("request_key", "status"))
    final = completions.filter(pc.is_in(completions["status"], value_set=pa.array(schemas.FINAL)))
    stored = pc.unique(final["request_key"])
    gone = pc.sum(pc.invert(pc.is_in(judged, value_set=stored))).as_py() or 0
    if gone:
        raise InputError(
            f"{folder}: lacks {gone:,} of the {len(judged):,} replies that {run.root} was judged from; "
            "put it back as it was, or add store=... with the folder where the store of the run is now"
        )


def digest_of_questions(questions: pa.Table) -> str:
    """Digest of a table of questions (32 hex digits), independent of row order."""
    batches = questions.sort_by("qa_id").to_batches(max_chunksize=_AT_ONCE)
    return digest_of_rows(row for batch in batches for row in batch.to_pylist())


def numerics_of(requests: Path, completions: Path) -> list[dict[str, Any]]:
    """Count the answered requests of one model by their numerics, the most frequent first."""
    keys = pc.unique(tables.read(requests, schemas.REQUESTS, ("request_key",))["request_key"])
    rows = tables.read(completions, schemas.COMPLETIONS, ("request_key", "status", *NUMERICS))
    final = pc.is_in(rows["status"], pa.array(schemas.FINAL))
    rows = rows.filter(pc.and_(final, pc.is_in(rows["request_key"], keys)))
    counted = rows.group_by(list(NUMERICS)).aggregate([("request_key", "count_distinct")])
    records = counted.rename_columns([*NUMERICS, "requests"]).to_pylist()
    return sorted(records, key=lambda record: (-record["requests"], str(record)))


def phrase(record: dict[str, Any]) -> str:
    """Return one set of numerics and its number of requests as a phrase."""
    size = record["tensor_parallel"]
    parts = (
        record["engine"],
        record["device"],
        record["attention_backend"],
        size and f"tensor parallel {size}",
    )
    return f"{', '.join(part or 'unknown' for part in parts)} ({record['requests']:,} requests)"


@dataclass(frozen=True, slots=True)
class AlignedCompletions:
    """Blocks of requests with their completions, and counts over all distinct requests."""

    parts: Sequence[Sequence[Path]]  # of requests, by block
    counts: Counter[str]  # by how planned requests ended; agreeing and disagreeing doubles
    completions: pa.Table = field(repr=False)  # of the requests, in order of arrival
    others: pa.Table = field(repr=False)  # of stages, of second turns, and of other runs

    def blocks(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the requests of each block and all their completions; blocks may share completions."""
        for parts in self.parts:
            requests = pa.concat_tables(tables.read_part(part, REQUESTS, _REQUEST_COLUMNS) for part in parts)
            yield requests, of_keys(self.completions, requests["request_key"])


def align_completions(requests: Path, completions: Path) -> AlignedCompletions:
    """Join a folder's completions to its requests."""
    asked = tables.read(requests, REQUESTS, ("request_key", "status"))
    replies = tables.read(completions, COMPLETIONS, _COMPLETION_COLUMNS)
    is_requested = pc.is_in(replies["request_key"], pc.unique(asked["request_key"]))
    requested = replies.filter(is_requested)
    planned = pc.unique(asked.filter(pc.equal(asked["status"], PLANNED))["request_key"])
    others = replies.drop_columns(["option_logprobs"]).filter(pc.invert(is_requested))
    return AlignedCompletions(
        _blocks_of(requests), _count_endings(len(planned), requested), requested, others
    )


def of_keys(completions: pa.Table, keys: pa.ChunkedArray | pa.Array) -> pa.Table:
    """The completions of some requests."""
    return completions.filter(pc.is_in(completions["request_key"], pc.unique(keys)))


def _blocks_of(requests: Path) -> list[list[Path]]:
    """Group the parts of the request table into blocks of at least BLOCK rows."""
    blocks, filled = list[list[Path]](), BLOCK
    for part in tables.parts(requests):
        if filled >= BLOCK:
            blocks.append([])
            filled = 0
        blocks[-1].append(part)
        filled += tables.count_part(part)
    return blocks


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
