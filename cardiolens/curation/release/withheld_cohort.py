"""The answers of a test cohort: left out of a release, and kept in a file of its owner."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field, ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.private_file import check_private
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import Spec, describe
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.questions import GivenQuestion, Question, checked_questions, questions_table

Record = dict[str, Any]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_TEXT = Annotated[str, Field(min_length=1, max_length=64)]


class Strict(Spec):
    """A record of a file, whose values are taken as they stand."""

    model_config = ConfigDict(strict=True)


class ReleaseName(Strict):
    """Which release a file is of."""

    name: _TEXT
    number: _TEXT
    sha256: Digest  # of its index, release.json


class _AnswersFile(Strict):
    """The content of an owner's file."""

    schema_: Literal["answers-1"] = Field(alias="schema")
    release: ReleaseName
    protocol: str
    catalogue_sha256: Digest
    patients: Mapping[str, str]  # new id of the patient by new id of the study
    questions: Sequence[Record]  # lines of questions.jsonl with answer or reference


@dataclass(frozen=True, slots=True)
class Answers:
    """The withheld questions of a release with their answers."""

    release: ReleaseName
    catalogue: Catalogue
    protocol: str | None  # folder of the catalogue, if it is not a shipped one
    questions: Mapping[str, Question]  # by qa_id
    table: pa.Table  # the same as table `questions`


def without_answers(questions: Iterable[GivenQuestion], studies: Collection[str]) -> list[GivenQuestion]:
    """Return questions, those on these studies without answer, reference, evidence and kind of verification.

    Whether a person corrected an answer is part of its verification, and would tell something of it.
    """
    return [_without_answer(row) if row.question.study_id in studies else row for row in questions]


def _without_answer(row: GivenQuestion) -> GivenQuestion:
    status = {name: value for name, value in row.question.verification.items() if name == "status"}
    empty: Record = {"answer": [], "reference": None, "evidence": [], "evidence_slices": []}
    public = {name: value for name, value in row.record.items() if name not in {*empty, "verification"}}
    record = public | {"withheld": True} | ({"verification": status} if status else {})
    changes = empty | {"withheld": True, "verification": status}
    return replace(row, record=record, question=row.question.model_copy(update=changes))


def check_answers_word(path: Path) -> None:
    """Raise InputError if the owner's file exists: no release is ever scored without its own."""
    if path.exists() or path.is_symlink():
        raise InputError(
            f"answers={path}: exists, and may be the only answers of a release; name a new file, or remove "
            "this one if its release was never finished"
        )


def write_answers(
    path: Path,
    release: ReleaseName,
    catalogue: Catalogue,
    patients: Mapping[str, str],
    lines: Sequence[Record],
) -> None:
    """Write the owner's file, new and for its owner alone; InputError if it exists.

    `lines` are the withheld questions under new ids, with answers.
    """
    content = _AnswersFile(
        schema="answers-1",
        release=release,
        protocol=catalogue.protocol,
        catalogue_sha256=catalogue.sha256,
        patients=patients,
        questions=lines,
    ).model_dump(by_alias=True)
    disk.make_folder(path.parent)
    try:
        disk.create(path, f"{json.dumps(content, ensure_ascii=False)}\n".encode())
    except FileExistsError:
        check_answers_word(path)
    except OSError as error:
        raise RunError(f"answers={path}: cannot be written ({error.strerror}); name another place") from None


def read_answers(path: Path, protocol: str | None = None) -> Answers:
    """Read the owner's file; InputError if others can read it, or its questions are of another protocol.

    `protocol` is the folder of the release's protocol, if it is not a shipped one.
    """
    content = _content(path)
    catalogue = load_catalogue(protocol or content.protocol)
    if content.catalogue_sha256 != catalogue.sha256:
        raise InputError(
            f"answers={path}: the questions are of another version of protocol {content.protocol}; "
            "score with the CardioLens that made the release, or name the release's folder with protocol="
        )
    rows = tuple(checked_questions(path, enumerate(content.questions, start=1), catalogue))
    for row in rows:
        if row.question.withheld or row.question.study_id not in content.patients:
            raise InputError(
                f"answers={path}: {row.question.qa_id} has no answer or no patient; the file was changed"
            )
    table = questions_table(path, rows, catalogue, allow_unverified=True)
    patients = [content.patients[study] for study in table["study_id"].to_pylist()]
    place = table.schema.get_field_index("patient_id")
    table = table.set_column(place, table.schema.field(place), pa.array(patients, pa.string()))
    questions = {row.question.qa_id: row.question for row in rows}
    return Answers(content.release, catalogue, protocol, questions, table)


def _content(path: Path) -> _AnswersFile:
    try:
        check_private(path, f"answers={path}", "tune a model to the test set", what="the answers")
        return _AnswersFile.model_validate(read_json(path))
    except ValidationError as error:
        reason = describe(error)
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
    raise InputError(
        f"answers={path}: holds no withheld answers ({reason}); give the file that release answers=... wrote"
    )
