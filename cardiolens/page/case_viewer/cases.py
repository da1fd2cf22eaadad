"""Questions and answers, study by study, as the case viewer holds them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.judging.finals import finals
from cardiolens.page.columns import prompt_words
from cardiolens.page.facts import Facts
from cardiolens.record.places import Run, Store

_REQUEST = (
    *("arm_id", "qa_id", "study_id", "frames_study_id", "frames", "system", "prompt", "flags", "status"),
    "request_key",
)
_SHOWN = ("channel", "status", "parse_status", "rule", "parsed", "gold", "correct")
_VERDICT = ("arm_id", "qa_id", "study_id", *_SHOWN)
_SAID = ("request_key", "text", "status", "written_at")
_AT_ONCE = 65_536  # verdicts as Python objects
CaseRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sources:
    """The tables that cases are made from, each sorted by study; `studies` are numbered by their place.

    `requests` have a column `reply`: the row of `replies` that answers them, null without one; their `frames`
    are JSON, a list of [volume_id, idx].
    """

    requests: pa.Table
    verdicts: pa.Table
    replies: pa.Table
    questions: pa.Table
    arms: tuple[str, ...]

    @property
    def studies(self) -> list[str]:
        return sorted(pc.unique(self.requests["study_id"]).to_pylist())


@dataclass(slots=True)
class Texts:
    """Texts that many requests share, each kept once and named by its place."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int | None:
        return None if text is None else self.places.setdefault(text, len(self.places))


def read_sources(run: Run, parts: Sequence[Run], facts: Facts) -> Sources:
    """Requests, verdicts, replies and questions of a run, or of several seen as one."""
    requests, said, questions = [], [], []
    for part, spec, manifest in zip(parts, facts.specs, facts.manifests, strict=True):
        store = Store(spec.store)
        questions.append(tables.read(store.questions, tables.QUESTIONS))
        for model, described in manifest["models"].items():
            requests.append(_read_requests(part, model))
            kept = tables.read(store.completions(str(described["model_key"])), tables.COMPLETIONS, _SAID)
            wanted = pc.unique(requests[-1]["request_key"])
            said.append(finals(kept.filter(pc.is_in(kept["request_key"], value_set=wanted))))
    replies = pa.concat_tables(said)
    order = [("study_id", "ascending")]
    every = pa.concat_tables(requests).unify_dictionaries().sort_by(order)
    reply = pc.index_in(every["request_key"], replies["request_key"])
    return Sources(
        requests=every.drop_columns("request_key").append_column("reply", reply),
        verdicts=tables.read(run.verdicts, tables.VERDICTS, _VERDICT).sort_by(order),
        replies=replies,
        questions=questions[0].sort_by(order),
        arms=tuple(arm.arm_id for arm in facts.arms),
    )


def _read_requests(run: Run, model: str) -> pa.Table:
    """Requests of a model, with values that many of them share held once."""
    parts = [
        _shared(tables.read_part(path, tables.REQUESTS, _REQUEST))
        for path in tables.parts(run.requests(model))
    ]
    empty = pa.schema([tables.REQUESTS.field(name) for name in _REQUEST]).empty_table()
    return pa.concat_tables(parts) if parts else _shared(empty)


def _shared(requests: pa.Table) -> pa.Table:
    requests = with_column(requests, "frames", _as_json(requests["frames"].combine_chunks()))
    for name in ("system", "prompt", "frames"):
        requests = with_column(requests, name, requests[name].dictionary_encode())
    return requests


def _as_json(frames: pa.ListArray) -> pa.Array:
    """Lists of frames as JSON, without one Python object per frame: a sweep shows about ten million."""
    volumes = frames.flatten().field("volume_id").dictionary_encode()
    names = pa.array([json.dumps(name) for name in volumes.dictionary.to_pylist()], pa.string())
    idx = frames.flatten().field("idx").cast(pa.string())
    shown = pc.binary_join_element_wise("[", names.take(volumes.indices), ",", idx, "]", "")
    counts = pc.fill_null(pc.list_value_length(frames), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lists = pc.binary_join(pa.ListArray.from_arrays(offsets, shown), ",")
    return pc.binary_join_element_wise("[", lists, "]", "")


def with_column(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    """A table with other values in one of its columns."""
    return table.set_column(table.schema.get_field_index(name), name, column)


def study_cases(sources: Sources) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each study with its cases."""
    read = case_reader(sources)
    return ((number, read(number)) for number in range(len(sources.studies)))


def case_reader(sources: Sources) -> Callable[[int], dict[str, Any]]:
    """Return a function from a study's number to its cases: questions, and requests and verdicts by arm."""
    studies = sources.studies
    numbers = {study: at for at, study in enumerate(studies)}
    requests, verdicts, questions = (
        _Groups(table) for table in (sources.requests, sources.verdicts, sources.questions)
    )

    def read(number: int) -> dict[str, Any]:
        study = studies[number]
        return _cases(sources, numbers, questions[study], requests[study], verdicts[study])

    return read


class _Groups:
    """Rows of a table sorted by study, turned into Python study by study."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        counted = table.group_by("study_id", use_threads=False).aggregate([([], "count_all")])
        self._spans: dict[str, tuple[int, int]] = {}
        start = 0
        for row in counted.to_pylist():
            self._spans[row["study_id"]] = (start, row["count_all"])
            start += row["count_all"]

    def __getitem__(self, study: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._table.slice(*self._spans.get(study, (0, 0))).to_pylist()
        return rows


def _cases(
    sources: Sources,
    number: Mapping[str, int],
    questions: Sequence[CaseRow],
    requests: Sequence[CaseRow],
    verdicts: Sequence[CaseRow],
) -> dict[str, Any]:
    texts, frames = Texts(), Texts()
    place = {arm: at for at, arm in enumerate(sources.arms)}
    rows = [row["reply"] for row in requests if row["reply"] is not None]
    said = dict(zip(rows, sources.replies["text"].take(pa.array(rows, pa.int64())).to_pylist(), strict=True))
    judged: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in verdicts:
        judged.setdefault((row["arm_id"], row["qa_id"]), []).append({name: row[name] for name in _SHOWN})
    cases: dict[str, dict[int, dict[str, Any]]] = {}
    for row in requests:
        case = _request(row, said.get(row["reply"]), number, texts, frames)
        case["verdicts"] = judged.get((row["arm_id"], row["qa_id"]), [])
        cases.setdefault(row["qa_id"], {})[place[row["arm_id"]]] = case
    return {
        "questions": {row["qa_id"]: _question(row) for row in questions if row["qa_id"] in cases},
        "cases": cases,
        "texts": list(texts.places),
        "frames": [json.loads(text) for text in frames.places],
    }


def _question(row: CaseRow) -> dict[str, Any]:
    return {
        "question": row["question"],
        "subtask": row["subtask"],
        "options": {option["key"]: option["text"] for option in row["options"]},
        "reference": row["reference"],
    }


def _request(
    row: CaseRow, reply: str | None, number: Mapping[str, int], texts: Texts, frames: Texts
) -> dict[str, Any]:
    return {
        "system": texts.place(row["system"]),
        "prompt": texts.place(row["prompt"]),
        "reply": texts.place(reply),
        "frames": frames.place(row["frames"]),
        "frames_of": number.get(row["frames_study_id"]),
        "flags": row["flags"],
        "status": row["status"],
    }


def index_of(sources: Sources, facts: Facts) -> dict[str, Any]:
    """Data of the list of cases: arms, studies, and how each question ended, one letter per arm.

    `r` right, `w` wrong, `u` not readable, `o` no answer, a space where it was not asked.
    """
    number = {study: at for at, study in enumerate(sources.studies)}
    place = {arm: at for at, arm in enumerate(sources.arms)}
    ended: dict[tuple[str, str, str], list[str]] = {}
    subtask = dict(
        zip(sources.questions["qa_id"].to_pylist(), sources.questions["subtask"].to_pylist(), strict=True)
    )
    columns = ("study_id", "qa_id", "arm_id", "channel", "status", "parse_status", "correct")
    for some in sources.verdicts.select(columns).to_batches(max_chunksize=_AT_ONCE):
        for study, qa_id, arm, channel, status, parsed, correct in zip(
            *(column.to_pylist() for column in some.columns), strict=True
        ):
            if channel != "text" and study in number:
                row = ended.setdefault((study, subtask[qa_id], qa_id), [" "] * len(place))
                row[place[arm]] = _letter(status, parsed, correct)
    labels = [[arm.model, arm.selector, arm.budget, prompt_words(arm), arm.control] for arm in facts.arms]
    return {
        "arms": labels,
        "studies": sources.studies,
        "questions": [
            [number[study], *names, "".join(row)] for (study, *names), row in sorted(ended.items())
        ],
    }


def _letter(status: str, parsed: str | None, correct: bool | None) -> str:
    if status != "judged":
        return "o"
    if parsed not in ("ok", "inconsistent"):
        return "u"
    return "r" if correct else "w"
