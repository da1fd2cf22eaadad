"""Questions of a release as Parquet that loads by itself: one row a question, one folder of files a cohort.

A row has the wording, the options and the place of the volumes, so that nobody needs another file to ask the
question. With frames it also has the pictures and the prompt of `shown_frames`. The schema carries the
features by which the library `datasets` shows pictures as pictures.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.prompts.frames import captions
from cardiolens.protocol.prompts.question import asked_of
from cardiolens.protocol.prompts.template import render, template_for
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import look_at
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import Question, given_questions
from cardiolens.show.page.case_viewer.pictures import encoded
from cardiolens.storage.schemas import FRAME
from cardiolens.study.manifest import Study, read_studies

SELECTOR, BUDGET = SelectorSpec(name="clinical", kind="clinical"), 16  # as conf/sweep.yaml has them
SHOWN = {"selector": SELECTOR.name, "budget": BUDGET}  # as the index of a release says it
PLACE = "<image>"  # of a frame in a prompt, in the words of most harnesses
QUESTIONS = "questions.jsonl"
_COHORT = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
Row = dict[str, Any]  # of a table


@dataclass(frozen=True)
class Contents:
    """The studies of a release by id, and its questions by cohort, in the order of cohorts and file."""

    studies: Mapping[str, Study]
    cohorts: Mapping[str, Sequence[Question]]

    def studies_of(self, cohort: str) -> list[Study]:
        """Return the studies of a cohort, in order."""
        return [study for study in self.studies.values() if cohort in study.manifest.cohort]


def read_contents(release: Path, catalogue: Catalogue) -> Contents:
    """Read the studies and questions of a release.

    InputError if one cannot be used, if a study of a question is not there, or if the name of a cohort, which
    becomes the name of a folder, is none that a release gives.
    """
    studies = read_studies(release / "studies", "studies")
    cohorts: dict[str, list[Question]] = defaultdict(list)
    for name in sorted({name for study in studies.values() for name in study.manifest.cohort}):
        if not _COHORT.fullmatch(name):
            raise InputError(f"{release}: cohort {name!r} is no name of small letters, digits and hyphens")
        cohorts[name] = []
    for row in given_questions(release / QUESTIONS, catalogue):
        if row.question.study_id not in studies:
            raise InputError(
                f"{release}: {QUESTIONS} line {row.number}: its study {row.question.study_id} is not there"
            )
        for name in studies[row.question.study_id].manifest.cohort:
            cohorts[name].append(row.question)
    return Contents(studies, dict(cohorts))


def shown_frames(study: Study, questions: Iterable[Question], catalogue: Catalogue) -> Mapping[str, Row]:
    """Return what each question on a study shows, by qa_id, as columns of a table; the study is read once.

    InputError for a question that contains the mark of a frame's place.
    """
    seen = look_at(study, Windows())
    pngs: dict[tuple[str, int], bytes] = {}
    rows: dict[str, Row] = {}
    for question in questions:
        subtask = catalogue[question.subtask]
        selection = choose(SELECTOR, None, seen.structure, subtask, BUDGET)
        places = [(frame.volume_id, frame.idx) for frame in selection.frames]
        for volume_id, idx in places:
            if (volume_id, idx) not in pngs:
                pngs[volume_id, idx] = encoded(seen.pixels[volume_id][idx])
        options = tuple((option.key, option.text) for option in question.options)
        asked = asked_of(subtask, catalogue, question.question, options)
        template = template_for(asked, "standard")
        prompt = render(selection.frames, seen.structure, asked, template, "view")
        if PLACE in prompt:
            raise InputError(
                f"{question.qa_id}: holds {PLACE}, which marks the place of a frame in tables; reword it"
            )
        volumes = seen.structure.volumes
        rows[question.qa_id] = {
            "frames": [{"bytes": pngs[place], "path": f"{place[0]}-{place[1]}.png"} for place in places],
            "captions": [captions(volumes[name], "view")[idx].strip() for name, idx in places],
            "system": template.system,
            "prompt": prompt.replace(FRAME, PLACE),
            "skipped": selection.skipped,
        }
    return rows


TABLES = "data"  # the folder of the tables in a release
MOST_PIXELS = 256 << 20  # bytes of distinct pictures in one file; the next study begins another

PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_KINDS = {
    **{"string": pa.string(), "int32": pa.int32(), "bool": pa.bool_(), "texts": pa.list_(pa.string())},
    "options": pa.list_(pa.struct([("key", pa.string()), ("text", pa.string())])),
    "pictures": pa.list_(PICTURE),
}
_OF_QUESTION = (  # columns that are as in the file of questions
    *("qa_id", "study_id", "subtask", "tier", "sequence", "answer_type", "question", "origin", "verified"),
    "protocol",
)
_DICTIONARY = 1 << 30  # bytes up to which a row group stores equal pictures once


def split_of(cohort: str) -> str:
    """Return the name of a cohort's split: `datasets` takes no hyphen, and cohorts have no underscore."""
    return cohort.replace("-", "_")


def table_schema(*, frames: bool) -> pa.Schema:
    """Columns of a table, each with its description, and the features that `datasets` reads."""
    tables = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    columns = tables["columns"] | (tables["frames"] if frames else {})
    fields = [
        pa.field(name, _KINDS[kind], metadata={"description": meaning})
        for name, (kind, meaning) in columns.items()
    ]
    features_json = json.dumps({"info": {"features": {each.name: _feature(each.type) for each in fields}}})
    return pa.schema(fields, metadata={"huggingface": features_json})


def write_tables(release: Path, held: Contents, catalogue: Catalogue, *, canary: str, frames: bool) -> None:
    """Write the tables of all cohorts of a release."""
    for cohort in held.cohorts:
        rows = rows_by_study(cohort, held, catalogue, canary=canary, frames=frames)
        write_rows(release / TABLES / cohort, rows, frames=frames)


def rows_by_study(
    cohort: str, held: Contents, catalogue: Catalogue, *, canary: str, frames: bool
) -> Iterator[list[Row]]:
    """Yield the rows of a cohort study by study, both in order, each study's by subtask."""
    ordered = sorted(held.cohorts[cohort], key=lambda question: (question.study_id, question.subtask))
    for study_id, group in groupby(ordered, key=lambda question: question.study_id):
        study, questions = held.studies[study_id], list(group)
        frames_of = shown_frames(study, questions, catalogue) if frames else {}
        yield [
            _row(question, cohort, study, catalogue, canary) | frames_of.get(question.qa_id, {})
            for question in questions
        ]


def write_rows(folder: Path, groups: Iterable[list[Row]], *, frames: bool) -> int:
    """Write groups of rows to `folder/0000.parquet` and further files; return the number of rows.

    A group is a row group, in which a picture that several questions show is stored once. A file ends with
    the group by which its pictures reach `MOST_PIXELS`.
    """
    schema = table_schema(frames=frames)
    waiting = iter(groups)
    number = count = 0
    rows = next(waiting, None)
    while rows is not None:
        n_bytes = 0
        with (
            disk.atomic(folder / f"{number:04d}.parquet") as temporary,
            pq.ParquetWriter(
                temporary, schema, compression="zstd", dictionary_pagesize_limit=_DICTIONARY
            ) as writer,
        ):
            while rows is not None and n_bytes < MOST_PIXELS:
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                n_bytes += _pixels(rows)
                count += len(rows)
                rows = next(waiting, None)
        number += 1
    return count


def _row(question: Question, cohort: str, study: Study, catalogue: Catalogue, canary: str) -> Row:
    keys = {option.key for option in question.options}
    reference = question.reference
    return {
        **{name: getattr(question, name) for name in _OF_QUESTION},
        "patient_id": study.manifest.patient_id,
        "cohort": cohort,
        "options": [option.model_dump() for option in question.options],
        "exclusive": [key for key in catalogue[question.subtask].exclusive if key in keys],
        "answer": None if reference is not None else question.answer,
        "reference": None if reference is None else reference.model_dump_json(),
        "volumes": [f"studies/{study.study_id}/{volume.path}" for volume in study.manifest.volumes],
        "canary": canary,
    }


def _pixels(rows: Iterable[Row]) -> int:
    """Return the bytes of all different pictures of some rows."""
    pictures = {picture["path"]: len(picture["bytes"]) for row in rows for picture in row.get("frames", ())}
    return sum(pictures.values())


def _feature(kind: pa.DataType) -> Any:
    """A type as the library `datasets` writes it; lists in the form that its older versions read too."""
    if kind == PICTURE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    return {"dtype": str(kind), "_type": "Value"}
