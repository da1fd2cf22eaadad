"""Find the requests still to execute: the anti-join of a plan with the existing completions.

A request that asks back is done when its reply is read, or when its second turn has a final completion, too.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.arms import arms_asking_back
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.plan.prefix_order import SHOWN, beginnings, prefix_order
from cardiolens.protocol.dialogue.asking_back import DisplayedChoice, Texts, option_texts
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.storage import tables
from cardiolens.storage.places import Run, Store
from cardiolens.storage.schemas import COMPLETIONS, FINAL, PLANNED, REQUESTS
from cardiolens.storage.spool import AT_ONCE, HashPartitions, number_keys

REPLY = pa.struct([("text", pa.string()), ("finish_reason", pa.string())])
WORK = pa.schema(
    [
        ("study_id", pa.string()),  # the study whose frames are shown
        ("part", pa.string()),  # path of the part of `requests` that contains the rows
        ("rows", pa.list_(pa.int32())),  # row numbers in that part, in the order to ask
        ("attempts", pa.list_(pa.int32())),  # per row: number of the next try, from 1
        (
            "replies",
            pa.list_(REPLY),
        ),  # per row: the stored reply to ask back, or null
    ]
)
_ASKED = pa.schema([("request_key", pa.string()), ("part", pa.int32()), ("row", pa.int32())])
_SAID = pa.schema([COMPLETIONS.field(name) for name in ("request_key", "status")])
_QUESTION = ("arm_id", "qa_id", "answer_type", "option_keys", "exclusive")
_ASKED_BACK = pa.schema([*_ASKED, *(REQUESTS.field(name) for name in _QUESTION)])
_READ = pa.schema([*_SAID, *(COMPLETIONS.field(name) for name in ("text", "finish_reason", "written_at"))])


class StudyWork(TypedDict):
    """A row of WORK."""

    study_id: str
    part: str
    rows: list[int]
    attempts: list[int]
    replies: list["StoredReply | None"] | None


class StoredReply(TypedDict):
    """A first reply that is in the store and is to be asked back."""

    text: str
    finish_reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Work that is left for one model."""

    work: pa.Table  # WORK: one row per study
    unique: int  # distinct requests planned
    done: int  # distinct requests with a final completion, and with that of a second turn if needed
    exhausted: int  # distinct requests that are not asked: they failed max_attempts times
    second_turns: int = 0  # of what is left: at most so many replies are asked back

    @property
    def left(self) -> int:
        return self.unique - self.done - self.exhausted


def final_replies(completions: Path) -> dict[str, Mapping[str, str]]:
    """Read the completions in a folder that need no further try, by request key."""
    columns = ("request_key", "status", "text", "finish_reason")
    rows = tables.read(completions, COMPLETIONS, columns)
    rows = rows.filter(pc.is_in(rows["status"], pa.array(FINAL)))
    return {row["request_key"]: row for row in rows.to_pylist()}


def killer_keys(completions: Path) -> frozenset[str]:
    """Read the keys in a folder of completions that killed an engine."""

    def of(parts: Iterator[pa.Table]) -> frozenset[str]:
        killed = (part.filter(pc.starts_with(part["error"], ErrorKind.KILLED)) for part in parts)
        return frozenset(key for rows in killed for key in rows["request_key"].to_pylist())

    return tables.from_parts(completions, COMPLETIONS, ("request_key", "error"), of)


def missing(
    requests: Path,
    completions: Path,
    max_attempts: int,
    *,
    retry_errors: bool = False,
    asking_back: Collection[str] = (),
    questions: Path | None = None,
) -> Missing:
    """Find each distinct request without a final completion, once, grouped by study.

    With `retry_errors` only those that ended in an error, however often; all others count as exhausted.
    `asking_back` are arms that ask back, on `questions` of the store.

    Memory: one hash partition of the keys, some bytes per missing request, and the replies to ask back after.
    """
    n_replies = tables.count_rows(completions)
    n_shares = 1 + max(tables.count_rows(requests), n_replies) // AT_ONCE
    parts = tables.parts(requests)
    of_requests, of_replies = (_ASKED_BACK, _READ) if asking_back else (_ASKED, _SAID)
    request_rows = HashPartitions(of_requests, n_shares, _planned(parts, of_requests))
    reply_rows = tables.from_parts(
        completions, COMPLETIONS, of_replies.names, partial(HashPartitions, of_replies, n_shares)
    )
    most = None if retry_errors else max_attempts
    back = _Back.of(asking_back, questions if n_replies else None, request_rows, n_shares)
    shares = [_share(request_rows.of(share), reply_rows.of(share), most, back) for share in range(n_shares)]
    of_second = _left_of_second(back.turns, completions, most)
    remaining = np.concatenate([*(share.left for share in shares), of_second.left], axis=1)
    part, row, attempt = remaining[:, np.lexsort((remaining[1], remaining[0]))]
    ends = np.searchsorted(part, np.arange(len(parts) + 1))
    rows: list[StudyWork] = []
    for number, (path, first, end) in enumerate(zip(parts, ends[:-1], ends[1:], strict=True)):
        if end > first:
            replies = [back.replies.get((number, place)) for place in row[first:end].tolist()]
            rows += _by_study(path, row[first:end], attempt[first:end], replies)
    exhausted = sum(share.exhausted for share in shares) + of_second.exhausted
    second_turns = of_second.left.shape[1] + sum(share.may_ask_back for share in shares)
    return Missing(
        pa.Table.from_pylist(rows, schema=WORK),
        unique=sum(share.unique for share in shares),
        done=sum(share.done for share in shares) - of_second.left.shape[1] - of_second.exhausted,
        exhausted=exhausted,
        second_turns=second_turns,
    )


def _planned(parts: Sequence[Path], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the planned requests of each part: key, part number and row, and the question if asked for."""
    further = [name for name in schema.names if name not in _ASKED.names]
    for number, part in enumerate(parts):
        table = tables.read_part(part, REQUESTS, ("status", "request_key", *further))
        rows = np.flatnonzero(np.asarray(pc.equal(table["status"], PLANNED)))
        places = pa.array(np.full(len(rows), number, np.int32)), pa.array(rows.astype(np.int32))
        columns = [table[name].take(rows) for name in ("request_key", *further)]
        yield pa.table([columns[0], *places, *columns[1:]], schema=schema)


@dataclass(frozen=True, slots=True)
class _Share:
    """Missing requests of one hash partition of the keys."""

    unique: int
    done: int
    exhausted: int
    left: np.ndarray  # (3, request): part number, row in that part, number of the next try
    may_ask_back: int  # of `left`


@dataclass(frozen=True, slots=True)
class _Back:
    """Asking back: the arms that do, and the second turns after stored replies."""

    arms: pa.Array
    texts: Mapping[str, Texts]  # by qa_id
    turns: dict[str, tuple[int, int]] = field(default_factory=dict)  # part and row, by key of the second turn
    replies: dict[tuple[int, int], StoredReply] = field(default_factory=dict)  # by part and row

    @staticmethod
    def of(arms: Collection[str], questions: Path | None, requests: HashPartitions, n_shares: int) -> "_Back":
        if not arms or questions is None:
            return _Back(pa.array(sorted(arms), pa.string()), {})
        qa_ids = pa.chunked_array([pc.unique(requests.of(share)["qa_id"]) for share in range(n_shares)])
        return _Back(pa.array(sorted(arms)), option_texts(questions, pc.unique(qa_ids)))

    def asking(self, requests: pa.Table) -> np.ndarray:
        """Whether each request asks back."""
        if not len(self.arms):
            return np.zeros(requests.num_rows, dtype=bool)
        is_choice = pc.invert(pc.is_in(requests["answer_type"], pa.array(sorted(OPEN))))
        return np.asarray(pc.and_(is_choice, pc.is_in(requests["arm_id"], self.arms)), dtype=bool)

    def look_at(self, requests: pa.Table, replies: pa.Table) -> None:
        """Note the second turns that stored replies need; the rows of both tables belong together."""
        for request, completion in zip(requests.to_pylist(), replies.to_pylist(), strict=True):
            form = request["answer_type"], request["option_keys"], request["exclusive"]
            choice = DisplayedChoice.of(*form, self.texts[request["qa_id"]])
            text, finish_reason = completion["text"] or "", completion["finish_reason"] or ""
            turn = choice.second_turn(request["request_key"], text, finish_reason)
            if turn is not None:
                place = request["part"], request["row"]
                self.turns[turn.request_key] = place
                self.replies[place] = {"text": text, "finish_reason": finish_reason}


def _share(requests: pa.Table, completions: pa.Table, max_attempts: int | None, back: _Back) -> _Share:
    """Find the missing requests of one partition; a repeated key counts at its first row that asks back.

    Without `max_attempts`, those that failed at least once.
    """
    keys, replied = number_keys(requests, completions)
    asks = back.asking(requests)
    order = np.argsort(~asks, kind="stable")
    _, first = np.unique(keys[order], return_index=True)
    first = order[first]
    final = np.asarray(pc.is_in(completions["status"], pa.array(FINAL)), dtype=bool)
    is_done = np.isin(keys[first], replied[final])
    failures = np.bincount(replied[~final], minlength=max(keys.max(initial=-1), replied.max(initial=-1)) + 1)
    tries = failures[keys[first]]
    is_exhausted = (tries == 0 if max_attempts is None else tries >= max_attempts) & ~is_done
    going = ~(is_done | is_exhausted)
    if asks.any():
        of_reply = _earliest(replied, completions, final)
        rows = [row for row in first[is_done & asks[first]] if keys[row] in of_reply]
        of_rows = [of_reply[keys[row]] for row in rows]
        back.look_at(requests.take(np.array(rows, np.int64)), completions.take(np.array(of_rows, np.int64)))
    places = (np.asarray(requests[name], dtype=np.int32)[first][going] for name in ("part", "row"))
    remaining = np.stack([*places, (tries[going] + 1).astype(np.int32)])
    n_asking = int(asks[first][going].sum())
    return _Share(len(first), int(is_done.sum()), int(is_exhausted.sum()), remaining, n_asking)


def _earliest(replied: np.ndarray, completions: pa.Table, final: np.ndarray) -> dict[int, int]:
    """The row of the earliest final completion of each key, if it is a reply to read."""
    in_order = np.asarray(pc.sort_indices(completions, sort_keys=[("written_at", "ascending")]))
    rows = in_order[final[in_order]]
    is_reply = np.asarray(pc.equal(completions["status"], "ok"), dtype=bool)
    earliest = {int(replied[row]): int(row) for row in rows[::-1]}
    return {key: row for key, row in earliest.items() if is_reply[row]}


def _left_of_second(
    turns: Mapping[str, tuple[int, int]], completions: Path, max_attempts: int | None
) -> _Share:
    """Find the second turns without a final completion."""
    keys = pa.array(list(turns), pa.string())

    def of(parts: Iterator[pa.Table]) -> tuple[set[str], Counter[str]]:
        final, failed = set[str](), Counter[str]()
        for part in parts:
            rows = part.filter(pc.is_in(part["request_key"], value_set=keys))
            is_final = pc.is_in(rows["status"], pa.array(FINAL))
            final.update(rows.filter(is_final)["request_key"].to_pylist())
            failed.update(rows.filter(pc.invert(is_final))["request_key"].to_pylist())
        return final, failed

    final, failed = (
        tables.from_parts(completions, COMPLETIONS, _SAID.names, of) if turns else (set(), Counter())
    )
    undone = {key: place for key, place in turns.items() if key not in final}
    going = [
        (*place, failed[key] + 1)
        for key, place in undone.items()
        if (failed[key] > 0 if max_attempts is None else failed[key] < max_attempts)
    ]
    left = np.array(going, np.int32).reshape(-1, 3).T
    return _Share(len(turns), len(final), len(undone) - len(going), left, len(going))


def _by_study(
    part: Path, rows: np.ndarray, attempts: np.ndarray, replies: Sequence[StoredReply | None]
) -> Iterator[StudyWork]:
    """Yield one row of work per study; its requests in the order in which prompts begin alike."""
    shown = tables.read_part(part, REQUESTS, SHOWN).take(rows)
    studies = shown["frames_study_id"].to_pylist()
    grouped: dict[str, list[int]] = {}
    for place, study_id in enumerate(studies):
        grouped.setdefault(study_id or "", []).append(place)
    order = prefix_order(beginnings(shown))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    for study_id, places in grouped.items():
        asked_in_turn = sorted(places, key=rank.__getitem__)
        yield {
            "study_id": study_id,
            "part": str(part),
            "rows": rows[asked_in_turn].tolist(),
            "attempts": attempts[asked_in_turn].tolist(),
            "replies": [replies[place] for place in asked_in_turn] if any(replies) else None,
        }


def missing_of(planned: Plan, model: str) -> Missing:
    """Find the work that is left for one model of a plan."""
    model_key = planned.identities[model].model_key
    retry = planned.spec.retry == "errors"
    return missing_in(planned.run, planned.store, planned.spec, model, model_key, retry_errors=retry)


def missing_in(
    run: Run, store: Store, spec: SweepSpec, model: str, model_key: str, *, retry_errors: bool = False
) -> Missing:
    """Find the work that is left for one model of a run."""
    return missing(
        run.requests(model),
        store.completions(model_key),
        spec.stream.max_attempts,
        retry_errors=retry_errors,
        asking_back=arms_asking_back(spec),
        questions=store.questions,
    )
