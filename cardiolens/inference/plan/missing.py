"""Find the requests still to execute: the anti-join of a plan with the existing completions.

A request that asks back is done when its reply is read, or when its second turn has a final completion, too.

The requests of a study that begin with the same frames are asked together: an engine keeps what it computed
for the beginning of a prompt, and the encoder's outputs of frames, as long as there is room. In this order,
whatever two requests share was needed just before, so little room suffices.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import arms_asking_back
from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.plan.few_shot import has_examples
from cardiolens.inference.plan.frame_views import BLANK
from cardiolens.inference.plan.plan import Plan
from cardiolens.protocol.dialogue.asking_back import DisplayedChoice, option_texts
from cardiolens.protocol.prompts.frames import has_videos
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.storage import tables
from cardiolens.storage.places import Run, Store
from cardiolens.storage.schemas import COMPLETIONS, FINAL, PLANNED, REQUESTS

_REPLY = ("request_key", "status", "text", "finish_reason", "written_at")
WORK = pa.schema(
    [
        ("study_id", pa.string()),  # the study whose frames are shown
        ("part", pa.string()),  # path of the part of `requests` that contains the rows
        ("rows", pa.list_(pa.int32())),  # row numbers in that part, in the order to ask
        ("attempts", pa.list_(pa.int32())),  # per row: number of the next try, from 1
    ]
)


class StudyWork(TypedDict):
    """A row of WORK."""

    study_id: str
    part: str
    rows: list[int]
    attempts: list[int]


@dataclass(frozen=True, slots=True)
class Missing:
    """Work that is left for one model."""

    work: pa.Table  # WORK: one row per study
    unique: int  # distinct requests planned
    done: int  # distinct requests with a final completion, and with that of a second turn if needed
    exhausted: int  # distinct requests that are not asked: they failed max_attempts times
    second_turns: int = 0  # of what is left: at most so many replies are asked back
    read_back: frozenset[str] = frozenset()  # keys of the stored replies among these

    @property
    def left(self) -> int:
        return self.unique - self.done - self.exhausted


def final_replies(completions: Path, keys: Collection[str] | None = None) -> dict[str, Mapping[str, str]]:
    """Read the earliest final completion of each request key in a folder, or of some keys."""
    wanted = pc.field("status").isin(FINAL)
    if keys is not None:
        if not keys:
            return {}
        wanted &= pc.field("request_key").isin(pa.array(list(keys), pa.string()))
    rows = tables.query(completions, COMPLETIONS, _REPLY, wanted)
    return {row["request_key"]: row for row in rows.sort_by([("written_at", "descending")]).to_pylist()}


def killer_keys(completions: Path) -> frozenset[str]:
    """Read the keys in a folder of completions that killed an engine."""
    killed = pc.starts_with(pc.field("error"), ErrorKind.KILLED)
    return frozenset(
        tables.query(completions, COMPLETIONS, ("request_key",), killed)["request_key"].to_pylist()
    )


def missing(
    requests: Path,
    completions: Path,
    max_attempts: int,
    *,
    asking_back: Collection[str] = (),
    questions: Path | None = None,
) -> Missing:
    """Find each distinct request without a final completion, once, grouped by study.

    `asking_back` are arms that ask back, on `questions` of the store.

    Memory: the keys of one model's requests and completions, and the replies to ask back after.
    """
    parts = tables.parts(requests)
    columns = ("request_key", "status")
    final, failed = tables.from_parts(completions, COMPLETIONS, columns, _ends)
    rows = _first_rows(parts, frozenset(asking_back))
    undone = {key: row for key, row in rows.items() if key not in final}
    back = {key: row for key, row in rows.items() if row.asks_back and key in final}
    turns: dict[str, str] = {}
    if back and questions is not None:
        turns = _second_turns(parts, completions, back, final, questions)
        undone |= {turn: rows[key] for turn, key in turns.items()}
    going = sorted(
        row._replace(attempt=failed[key] + 1) for key, row in undone.items() if failed[key] < max_attempts
    )
    work = [
        study
        for number, of_part in groupby(going, key=attrgetter("part"))
        for study in _by_study(parts[number], list(of_part))
    ]
    return Missing(
        pa.Table.from_pylist(work, schema=WORK),
        unique=len(rows),
        done=len(rows) - len(undone),
        exhausted=len(undone) - len(going),
        second_turns=sum(row.asks_back for row in going),
        read_back=frozenset(turns.values()),
    )


class _Row(NamedTuple):
    """The row of a request: number of its part, row in that part, whether its arm asks back, next try."""

    part: int
    row: int
    asks_back: bool
    attempt: int = 1


def _ends(parts: Iterator[pa.Table]) -> tuple[set[str], Counter[str]]:
    """Return the keys with a final completion, and how often each key had another one."""
    final, failed = set[str](), Counter[str]()
    for part in parts:
        is_final = pc.is_in(part["status"], pa.array(FINAL))
        final.update(part.filter(is_final)["request_key"].to_pylist())
        failed.update(part.filter(pc.invert(is_final))["request_key"].to_pylist())
    return final, failed


def _first_rows(parts: Sequence[Path], asking_back: frozenset[str]) -> dict[str, _Row]:
    """The row at which each planned key counts: its first one, or the first that asks back."""
    rows: dict[str, _Row] = {}
    for number, part in enumerate(parts):
        table = tables.read_part(part, REQUESTS, ("status", "request_key", "arm_id", "answer_type"))
        planned = np.flatnonzero(np.asarray(pc.equal(table["status"], PLANNED))).tolist()
        columns = (table[name].take(planned).to_pylist() for name in ("request_key", "arm_id", "answer_type"))
        for row, key, arm_id, answer_type in zip(planned, *columns, strict=True):
            asks = arm_id in asking_back and answer_type not in OPEN
            if key not in rows or (asks and not rows[key].asks_back):
                rows[key] = _Row(number, row, asks)
    return rows


def _second_turns(
    parts: Sequence[Path],
    completions: Path,
    back: Mapping[str, _Row],
    final: Collection[str],
    questions: Path,
) -> dict[str, str]:
    """Return the keys of the second turns that stored replies need and lack, each with that of its reply."""
    choices: dict[str, DisplayedChoice] = {}
    texts = option_texts(questions)
    columns = ("request_key", "qa_id", "answer_type", "option_keys", "exclusive")
    for number, part in enumerate(parts):
        rows = [row.row for row in back.values() if row.part == number]
        for request in tables.read_part(part, REQUESTS, columns).take(rows).to_pylist() if rows else ():
            form = request["answer_type"], request["option_keys"], request["exclusive"]
            choices[request["request_key"]] = DisplayedChoice.of(*form, texts[request["qa_id"]])

    turns: dict[str, str] = {}
    for key, reply in final_replies(completions, choices).items():
        if reply["status"] == "ok":
            turn = choices[key].second_turn(key, reply["text"] or "", reply["finish_reason"] or "")
            if turn and turn.request_key not in final:
                turns[turn.request_key] = key
    return turns


def _by_study(part: Path, going: Sequence[_Row]) -> Iterator[StudyWork]:
    """Yield one row of work per study; its requests in the order in which prompts begin alike."""
    beginning = tables.read_part(part, REQUESTS, SHOWN).take([row.row for row in going])
    studies = [study or "" for study in beginning["frames_study_id"].to_pylist()]
    works: dict[str, StudyWork] = {
        study: {"study_id": study, "part": str(part), "rows": [], "attempts": []} for study in studies
    }
    for place in prefix_order(beginnings(beginning)).tolist():
        works[studies[place]]["rows"].append(going[place].row)
        works[studies[place]]["attempts"].append(going[place].attempt)
    yield from works.values()


def missing_of(planned: Plan, model: str) -> Missing:
    """Find the work that is left for one model of a plan."""
    model_key = planned.identities[model].model_key
    return missing_in(planned.run, planned.store, planned.spec, model, model_key)


def missing_in(run: Run, store: Store, spec: SweepSpec, model: str, model_key: str) -> Missing:
    """Find the work that is left for one model of a run."""
    return missing(
        run.requests(model),
        store.completions(model_key),
        spec.stream.max_attempts,
        asking_back=arms_asking_back(spec),
        questions=store.questions,
    )


# Columns of REQUESTS that decide a prompt's beginning.
SHOWN = ("frames_study_id", "system", "flags", "frames", "subtask")
_END = -1  # behind the last frame of a request: a shorter prompt comes before those that continue it


def beginnings(requests: pa.Table) -> np.ndarray:
    """Return one row of numbers per request: what stands before its frames, then its frames in order.

    Two prompts share as much of their beginning as these rows do.
    """
    lists = requests["frames"].combine_chunks()
    n_frames = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), dtype=np.int64)
    flat = lists.flatten()
    volumes = _numbers(flat.field("volume_id"))
    rows = np.full((len(n_frames), 1 + n_frames.max(initial=0)), _END, dtype=np.int64)
    columns = (requests[name].to_pylist() for name in ("frames_study_id", "system", "flags", "subtask"))
    before = [
        (
            study,
            system,
            BLANK in (flags or ()),
            subtask if has_examples(flags) else "",  # examples stand before the frames, and are the subtask's
            # a video is shared as a whole or not at all, so only by prompts with all the same frames
            lists[row].as_py() if has_videos(flags or ()) else None,
        )
        for row, (study, system, flags, subtask) in enumerate(zip(*columns, strict=True))
    ]
    rows[:, 0] = _numbers(pa.array(map(repr, before), pa.string()))
    starts = np.cumsum(n_frames) - n_frames
    parents = np.repeat(np.arange(len(n_frames)), n_frames)
    positions = np.arange(len(parents)) - starts[parents]
    rows[parents, 1 + positions] = volumes << 32 | np.asarray(flat.field("idx"), dtype=np.int64)
    return rows


def prefix_order(rows: np.ndarray) -> np.ndarray:
    """Return the order that brings equal beginnings together; requests that begin alike keep their order."""
    order: np.ndarray = np.lexsort(rows.T[::-1])
    return order


def shared_frames(rows: np.ndarray) -> np.ndarray:
    """Return how many frames each request begins with as the one before it does; 0 for the first."""
    same = (rows[1:] == rows[:-1]) & (rows[1:] != _END)
    frames = np.maximum(np.cumprod(same, axis=1).sum(axis=1) - 1, 0)
    shared: np.ndarray = np.concatenate([[0], frames]).astype(np.int64)
    return shared


def _numbers(values: pa.Array) -> np.ndarray:
    """Number distinct values in the order of their first appearance."""
    return np.asarray(pc.dictionary_encode(values).indices, dtype=np.int64)
