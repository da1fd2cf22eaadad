"""Random access to the tables of a run for the case viewer: rows of single cases, endings of arms."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.show.page.page_data import Header, read_header
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run, Store
from cardiolens.study.shards import read_volumes

NOT_ASKED = " "
_SENT = (
    *("arm_id", "qa_id", "study_id", "frames_study_id"),
    *("frames", "flags", "status", "request_key"),
)
_CASE = ("arm_id", "qa_id")
_VERDICT = ("channel", "status", "parse_status", "rule", "parsed", "gold", "correct")
_ENDING = ("qa_id", "channel", "status", "parse_status", "correct")
_COMPLETION = ("request_key", "text", "reasoning", "status", "written_at")
_STAGE = ("request_key", "stage", "frames", "prompt", "reply", "status")

CaseKey = tuple[int, int]  # places of a question and of an arm
CaseRow = dict[str, Any]


@dataclass(frozen=True)
class Sources:
    """The tables of one run, or of several merged runs.

    Questions, studies and arms are addressed by index. `questions` are those asked, sorted by study.
    """

    run: Run
    header: Header
    questions: pa.Table
    evidence: Mapping[str, Mapping[str, Any]]  # rows of table `evidence` by question

    @cached_property
    def arms(self) -> tuple[str, ...]:
        return tuple(arm.arm_id for arm in self.header.arms)

    @cached_property
    def studies(self) -> tuple[str, ...]:
        return tuple(sorted(pc.unique(self.questions["study_id"]).to_pylist()))

    @cached_property
    def study(self) -> np.ndarray:
        """Index of each question's study."""
        return np.asarray(
            pc.index_in(self.questions["study_id"], value_set=pa.array(self.studies, pa.string()))
        )

    @cached_property
    def n_phases(self) -> Mapping[tuple[str, str], int]:
        """The phases of each volume in the store, by study and volume."""
        volumes = read_volumes(self.header.specs[0].store)
        columns = (volumes[name].to_pylist() for name in ("study_id", "volume_id", "n_phases"))
        return {(study, volume_id): count for study, volume_id, count in zip(*columns, strict=True)}

    def cases(self, keys: Collection[CaseKey]) -> list[CaseRow]:
        """Read the requests of some cases with prompts, the `stages` of chains, `verdicts` and `reply`."""
        requests = list(self.requests(keys, (*_SENT, "system", "prompt")))
        wanted = pa.array(sorted({row["request_key"] for row in requests}), pa.string())
        replies: dict[str, str | None] = {}
        for model in self._by_model(keys):
            for _, completions in self.header.runs_of(model):
                replies |= _replies(completions, wanted)
        verdicts: dict[tuple[str, str], list[CaseRow]] = {}
        for row in self._own(self.run.verdicts, schemas.VERDICTS, (*_CASE, *_VERDICT), keys):
            verdicts.setdefault((row.pop("arm_id"), row.pop("qa_id")), []).append(row)
        for row in requests:
            row["reply"] = replies.get(row["request_key"])
            row["verdicts"] = verdicts.get((row["arm_id"], row["qa_id"]), [])
        return requests

    def requests(self, keys: Collection[CaseKey], columns: Sequence[str] = _SENT) -> Iterator[CaseRow]:
        """Yield the requests of some cases, each with the `stages` of its chain; no reply is read."""
        for model, pairs in self._by_model(keys).items():
            for part, _ in self.header.runs_of(model):
                rows = self._own(part.requests(model), schemas.REQUESTS, columns, pairs)
                stages = _stages(part, [row["request_key"] for row in rows])
                yield from (row | {"stages": stages.get(row["request_key"], [])} for row in rows)

    def qa_id(self, question: int) -> str:
        """The id of a question."""
        return str(self._qa_ids[question].as_py())

    def _by_model(self, keys: Collection[CaseKey]) -> dict[str, list[CaseKey]]:
        by_model: dict[str, list[CaseKey]] = {}
        for question, arm in keys:
            by_model.setdefault(self.header.arms[arm].model, []).append((question, arm))
        return by_model

    def endings(self, arm: int) -> str:
        """One ending letter per question under an arm; `NOT_ASKED` for questions that it was not asked."""
        own = pc.field("arm_id") == self.arms[arm]
        letters = np.full(self.questions.num_rows, ord(NOT_ASKED), np.uint8)
        for batch in tables.scan(self.run.verdicts, schemas.VERDICTS, _ENDING, own, encoded=["qa_id"]):
            answers = batch.filter(pc.not_equal(batch["channel"], "text"))
            letters[self._places(answers["qa_id"])] = _letters(answers)
        return letters.tobytes().decode()

    def saying(self, arm: int, words: str) -> list[int]:
        """Indices of the questions with a reply under an arm that contains `words`, ignoring case."""
        keys = [
            batch["request_key"].filter(
                pc.match_substring(pc.fill_null(batch["text"], ""), words, ignore_case=True)
            )
            for _, completions in self.header.runs_of(self.header.arms[arm].model)
            for batch in tables.scan(completions, schemas.COMPLETIONS, ("request_key", "text"))
        ]
        matches = pa.chunked_array(keys, pa.string()).combine_chunks()
        condition = (pc.field("arm_id") == self.arms[arm]) & pc.field("request_key").isin(matches)
        rows = tables.query(self.run.verdicts, schemas.VERDICTS, ("qa_id",), condition)
        return sorted(set(self._places(pc.unique(rows["qa_id"])).tolist()))

    def _places(self, qa_ids: pa.Array) -> np.ndarray:
        places = _index(qa_ids, self._qa_ids)
        if len(places) and places.min() < 0:
            raise InputError(f"{self.run.verdicts}: verdicts changed while they were read; start again")
        return places

    @cached_property
    def _qa_ids(self) -> pa.Array:
        return self.questions["qa_id"].combine_chunks()

    def _own(
        self, folder: Path, schema: pa.Schema, columns: Sequence[str], pairs: Collection[CaseKey]
    ) -> list[CaseRow]:
        """The rows of a table that belong to pairs of question and arm."""
        questions = pa.array(sorted({question for question, _ in pairs}))
        qa_ids = self._qa_ids.take(questions)
        arms = pa.array(sorted({self.arms[arm] for _, arm in pairs}), pa.string())
        studies = pc.unique(self.questions["study_id"].combine_chunks().take(questions))
        condition = pc.field("study_id").isin(studies) & pc.field("arm_id").isin(arms)
        rows = tables.query(folder, schema, columns, condition & pc.field("qa_id").isin(qa_ids))
        wanted = {(self.qa_id(question), self.arms[arm]) for question, arm in pairs}
        return [row for row in rows.to_pylist() if (row["qa_id"], row["arm_id"]) in wanted]


def open_sources(run: Run, parts: Sequence[Run], header: Header | None = None) -> Sources:
    """Open the tables of one run, or of several merged runs; reads only the questions."""
    header = header or read_header(run, parts)
    column = "qa_id"
    store = Store(header.specs[0].store)
    questions = tables.read(store.questions, schemas.QUESTIONS)
    qa_ids, is_used = questions[column].combine_chunks(), np.zeros(questions.num_rows, bool)
    for batch in tables.scan(run.verdicts, schemas.VERDICTS, [column], encoded=[column]):
        places = _index(batch[column], qa_ids)
        if places.min(initial=0) < 0:
            raise InputError(
                f"{store.questions}: lacks questions of {run.root}; put the questions file of the run back "
                "and plan it again (mode=plan)"
            )
        is_used[places] = True
    questions = questions.filter(pa.array(is_used))
    order = [(name, "ascending") for name in ("study_id", "subtask", column)]
    evidence = {row["qa_id"]: row for row in tables.read(store.evidence, schemas.EVIDENCE).to_pylist()}
    return Sources(run, header, questions.sort_by(order), evidence)


def _index(values: pa.Array, value_set: pa.Array) -> np.ndarray:
    """Index of each value in `value_set`, -1 if absent."""
    if isinstance(values, pa.DictionaryArray):
        own: np.ndarray = _index(values.dictionary, value_set)[np.asarray(values.indices)]
        return own
    return np.asarray(pc.fill_null(pc.index_in(values, value_set=value_set), -1))


def _letters(verdicts: pa.RecordBatch) -> np.ndarray:
    """`r` right, `w` wrong, `u` not readable, `o` no answer."""
    letters = np.where(np.asarray(pc.fill_null(verdicts["correct"], False)), ord("r"), ord("w"))
    readable = pc.is_in(verdicts["parse_status"], value_set=pa.array(schemas.READ))
    letters = np.where(np.asarray(readable), letters, ord("u"))
    return np.where(np.asarray(pc.equal(verdicts["status"], "judged")), letters, ord("o")).astype(np.uint8)


def _stages(run: Run, keys: Sequence[str]) -> dict[str, list[CaseRow]]:
    """Stages by request key, in order; keys that are no chain are absent."""
    condition = pc.field("request_key").isin(pa.array(keys, pa.string()))
    stages: dict[str, list[CaseRow]] = {}
    for row in tables.query(run.seen, schemas.SEEN, _STAGE, condition).sort_by("stage").to_pylist():
        stages.setdefault(row["request_key"], []).append(row)
    return stages


def _replies(folder: Path, keys: pa.Array) -> dict[str, str | None]:
    """The final reply to each request, after its reasoning as a block, which the page folds."""
    try:
        schema = pa.schema([schemas.COMPLETIONS.field(name) for name in _COMPLETION])
        completions = finals(tables.concat(_matching_rows(folder, keys), schema))
    except tables.UNREADABLE as error:
        raise InputError(
            f"{folder}: a part is not whole, or was compacted while it was read ({error}); try again, or run "
            "the sweep again"
        ) from error
    return {
        row["request_key"]: f"<think>{row['reasoning']}</think>\n{row['text'] or ''}"
        if row["reasoning"]
        else row["text"]
        for row in completions.to_pylist()
    }


def _matching_rows(folder: Path, keys: pa.Array) -> Iterator[pa.Table]:
    """Yield the rows of some requests; texts are read only from row groups that hold one."""
    for path in tables.parts(folder):
        with tables.open_part(path) as part:
            tables.check_columns(path, part.schema_arrow, schemas.COMPLETIONS)
            for group in range(part.num_row_groups):
                stored_keys = part.read_row_group(group, columns=["request_key"])["request_key"]
                rows = np.flatnonzero(np.asarray(pc.is_in(stored_keys, value_set=keys)))
                if len(rows):
                    yield part.read_row_group(group, columns=list(_COMPLETION)).take(rows)
