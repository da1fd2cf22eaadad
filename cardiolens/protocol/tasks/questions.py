"""Question files: reading and writing of `qa-1` JSON Lines."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.config.base import Spec, describe
from cardiolens.config.dataset import JOIN
from cardiolens.protocol.tasks.catalogue import OPEN, AnswerType, Catalogue, Subtask
from cardiolens.protocol.tasks.legal import fold, option_problems, reserved_in
from cardiolens.storage import schemas, tables


def _without_marks(text: str) -> str:
    if problem := reserved_in(text):
        raise ValueError(problem)
    return text


def _no_bool(value: object) -> object:
    if isinstance(value, bool):  # which Python takes for 0 or 1
        raise ValueError("expected 1, 2 or 3")
    return value


Name = Annotated[str, Field(min_length=1)]
Origin = Literal["report", "mask", "set", "reader", "phantom"]  # set: a label of a public set
STATED: frozenset[Origin] = frozenset({"reader", "phantom"})  # their answers need no verification
PromptText = Annotated[str, Field(min_length=1), AfterValidator(_without_marks)]


class _Typed(Spec):
    model_config = ConfigDict(strict=True)


class QuestionOption(_Typed):
    """One option of a question."""

    key: Annotated[str, Field(pattern="^[A-Z]$")]
    text: PromptText


class Reference(_Typed):
    """Reference report of a report question."""

    fields: dict[str, str | list[str]]
    findings: Name
    impression: Name


class EvidenceSlice(_Typed):
    """A slice on which the answer is seen: canonical rank, and the phases at which it is seen (none: any)."""

    volume_id: Name
    slice: Annotated[int, Field(ge=0)]
    phases: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)


class Question(_Typed):
    """One `qa-1` record."""

    schema_: Literal["qa-1"] = Field(alias="schema")
    qa_id: Name
    study_id: Name
    patient_id: Name
    tier: Annotated[Literal[1, 2, 3], BeforeValidator(_no_bool)]
    subtask: Name
    sequence: Name
    question: PromptText
    answer_type: AnswerType
    options: list[QuestionOption] = Field(default_factory=list)
    exclusive: list[str] = Field(default_factory=list)  # the table takes the catalogue's instead
    answer: list[str] = Field(default_factory=list)
    reference: Reference | None = None
    parent: str | None = None  # the table takes the catalogue's instead
    origin: Origin
    evidence: list[str] = Field(default_factory=list)
    evidence_slices: list[EvidenceSlice] = Field(default_factory=list)  # for people; no prompt has them
    verification: dict[str, JsonValue] = Field(default_factory=dict)
    protocol: Name
    canary: str | None = None  # of a released file; nobody reads it but who searches training data

    @property
    def verified(self) -> bool:
        """Whether the answer is stated by its origin, or verified."""
        return self.origin in STATED or self.verification.get("status") == "verified"


class CompactQuestion(_Typed):
    """A question with the catalogue's wording and options, for the patient of the study."""

    study: Name
    subtask: Name
    answer: Name | list[str] = Field(default_factory=list)
    evidence: list[str] = Field(default_factory=list)
    evidence_slices: list[EvidenceSlice] = Field(default_factory=list)  # as of a `qa-1` record
    origin: Origin = "reader"
    verification: dict[str, JsonValue] = Field(default_factory=dict)
    canary: str | None = None


@dataclass(frozen=True, slots=True)
class GivenQuestion:
    """A question with its line number and the record as read."""

    number: int
    record: Mapping[str, Any]
    question: Question

    @property
    def is_compact(self) -> bool:
        """Whether its line names no patient: that of the study is meant."""
        return "study" in self.record


def questions_table(
    path: Path,
    given: Iterable[GivenQuestion],
    catalogue: Catalogue,
    patients: Mapping[str, str],
    *,
    allow_unverified: bool = False,
) -> pa.Table:
    """Return the questions of a file as table `questions`, one row per line.

    `patients`, by study, are those of compact lines. `parent` and `exclusive` come from the catalogue, all
    else from the record. InputError if some questions are not verified.
    """
    rows: list[dict[str, object]] = []
    unverified: list[str] = []
    for row in given:
        question = row.question
        patient = {"patient_id": patients.get(question.study_id)} if row.is_compact else {}
        rows.append(_row(question, catalogue[question.subtask]) | patient)
        unverified += [] if question.verified else [f"{question.qa_id} on line {row.number}"]
    if unverified and not allow_unverified:
        raise InputError(
            f"{path}: {len(unverified)} of its {len(rows)} questions are not verified, e.g. {unverified[0]}; "
            f"expected verification.status 'verified', or origin {' or '.join(sorted(STATED))}; have them "
            "reviewed, or allow them with dataset.allow=[unverified], which the page will note"
        )
    return tables.from_rows(rows, schemas.QUESTIONS)


def given_questions(path: Path, catalogue: Catalogue) -> Iterator[GivenQuestion]:
    """Yield the questions of a file, checked against the catalogue.

    InputError names the line, the field, the value and the legal values.
    """
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give the path of a qa-1 questions file") from None
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    if not text.strip():
        raise InputError(f"{path}: holds no question; expected one qa-1 record a line")
    known: dict[str, tuple[str, int]] = {}  # id as written and its line, by the folded id
    # not splitlines(), because a JSON string may contain U+2028 and other line separators
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            given = _given(number, line, catalogue)
            qa_id = given.question.qa_id
            twin, at = known.setdefault(fold(qa_id), (qa_id, number))
            if at != number:
                differs = f"differs from {twin!r} on line {at} in case or white space alone"
                duplicate = f"is already on line {at}" if twin == qa_id else differs
                raise InputError(f"qa_id {qa_id!r} {duplicate}; remove one, or rename it")
            for problem in _problems(given.question, catalogue):
                raise InputError(f"{qa_id}: {problem}")
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None
        yield given


def _given(number: int, line: str, catalogue: Catalogue) -> GivenQuestion:
    """Parse one line, by itself."""
    try:
        record = parse_json(line)
    except ValueError as error:
        reason = str(error).partition(": line")[0]
        raise InputError(f"not JSON ({reason}); each line holds one qa-1 record") from None
    if not isinstance(record, dict):
        raise InputError(f"a qa-1 record is a JSON object, found {type(record).__name__}")
    try:
        question = _expanded(record, catalogue) if "study" in record else Question.model_validate(record)
    except ValidationError as error:
        raise InputError(describe(error)) from None
    return GivenQuestion(number, record, question)


def write_questions(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write `qa-1` records as JSON Lines, atomically and in their order."""
    disk.write_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def record_of(subtask: Subtask, catalogue: Catalogue, study_id: str, **given: object) -> dict[str, Any]:
    """Return the `qa-1` record of a subtask on a study; what is given replaces the catalogue's and is added.

    By default the patient_id is the study_id.
    """
    record = {
        "schema": "qa-1",
        "qa_id": f"{study_id}:{subtask.id}",
        "study_id": study_id,
        "patient_id": study_id,
        "tier": subtask.tier,
        "subtask": subtask.id,
        "sequence": subtask.sequence,
        "question": subtask.question,
        "answer_type": subtask.answer_type,
    }
    return record | given | {"protocol": catalogue.asked_by[subtask.id][0]}


def options_of(subtask: Subtask) -> list[dict[str, str]]:
    """Return the options of a subtask as a record has them."""
    return [{"key": option.key, "text": option.text} for option in subtask.options]


def _expanded(record: dict[str, Any], catalogue: Catalogue) -> Question:
    """Expand a compact record; patient_id is set to the study's id."""
    compact = CompactQuestion.model_validate(record)
    qa_id = f"{compact.study}:{compact.subtask}"
    try:
        subtask = catalogue[compact.subtask]
    except InputError as error:
        raise InputError(f"{qa_id}: {error}") from None
    if subtask.answer_type == "report":
        raise InputError(f"{qa_id}: a report has no compact form; write a qa-1 record with reference")
    answer = [compact.answer] if isinstance(compact.answer, str) else compact.answer
    about = {
        name: getattr(compact, name) for name in ("origin", "evidence", "evidence_slices", "verification")
    }
    return Question.model_validate(
        record_of(subtask, catalogue, compact.study, options=options_of(subtask), answer=answer, **about)
    )


def _problems(question: Question, catalogue: Catalogue) -> Iterator[str]:
    """Yield what is wrong with a question: by itself, and against its subtask."""
    protocols = catalogue.asked_by.get(question.subtask, catalogue.protocol.split(JOIN))
    if question.protocol not in protocols:
        yield (
            f"protocol is {question.protocol!r}, but {' and '.join(map(repr, protocols))} is configured; "
            "give dataset.questions of that protocol, or another dataset.protocol"
        )
    try:
        subtask = catalogue[question.subtask]
    except InputError as error:
        yield str(error)
        return
    if not fold(question.question):
        yield "question is blank; expected the words of a question; write them"
    for name in ("tier", "sequence", "answer_type"):
        if getattr(question, name) != getattr(subtask, name):
            yield f"{name} is {getattr(question, name)!r}, but {subtask.id} has {getattr(subtask, name)!r}"
    if subtask.answer_type == "report":
        yield from _report_problems(question, catalogue.texts(subtask.sequence))
    elif subtask.answer_type in OPEN:
        yield from _open_problems(question, subtask)
    else:
        yield from _pick_problems(question, subtask)


def _report_problems(question: Question, texts: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield the problems of a report question; illegal values are not quoted: they may be report text."""
    if question.options or question.answer:
        yield "options and answer do not belong to a report question"
    if question.reference is None:
        yield "reference is missing; a report question needs {fields, findings, impression}"
    for name, value in ({} if question.reference is None else question.reference.fields).items():
        if name not in texts:
            yield f"reference.fields: no field {name!r}; expected of {', '.join(texts)}"
        elif not set(texts[name]).issuperset([value] if isinstance(value, str) else value):
            yield f"reference.fields.{name}: expected of {sorted(texts[name])}"


def _open_problems(question: Question, subtask: Subtask) -> Iterator[str]:
    """Yield the problems of a number or a ranking; the answer of a ranking is every name that is right."""
    answer = question.answer
    if question.options or question.reference is not None:
        yield f"options and reference do not belong to a {subtask.answer_type}"
    if not answer:
        yield "answer is empty; give one"
    if not all(map(fold, answer)):
        yield f"answer {answer} has a blank name; remove it"
    if subtask.quantity is not None and answer:
        try:
            subtask.quantity.read(answer[0] if len(answer) == 1 else "")
        except ValueError as error:
            yield f"answer {answer} {error}; expected e.g. {subtask.quantity.written(subtask.quantity.low)}"


def _pick_problems(question: Question, subtask: Subtask) -> Iterator[str]:
    keys, picked = [option.key for option in question.options], question.answer
    several = question.answer_type == "multi"
    alone = [key for key in picked if key in subtask.exclusive]
    rules = {
        "reference belongs to report questions only": question.reference is not None,
        f"option keys {keys} are not among those of {subtask.id}, {list(subtask.keys)}": (
            not set(keys) <= set(subtask.keys)
        ),
        f"answer {picked} is outside its options {keys}": not set(picked) <= set(keys),
        f"answer is empty; pick from {keys}": not picked,
        f"answer {picked} names an option twice": len(set(picked)) != len(picked),
        f"answer {picked} must be exactly one of {keys}": not several and len(picked) > 1,
        f"answer {picked} combines {alone[:1]}, which stands alone, with others": (
            bool(alone) and len(picked) > 1
        ),
    }
    yield from option_problems([(option.key, option.text) for option in question.options], several=several)
    yield from (text for text, wrong in rules.items() if wrong)
    letters = {option.text.casefold(): option.key for option in subtask.options}
    for option in question.options:  # scoring uses the catalogue's letters
        if (letter := letters.get(option.text.strip().casefold(), option.key)) != option.key:
            yield (
                f"option {option.key} is {option.text!r}, which is option {letter} of {subtask.id}; take the "
                "catalogue's letters"
            )


_NOT_ASKED = {"schema_", "evidence", "evidence_slices", "verification", "canary"}


def _row(question: Question, subtask: Subtask) -> dict[str, object]:
    row = question.model_dump(exclude=_NOT_ASKED)
    keys = {option.key for option in question.options}
    row["exclusive"] = [key for key in subtask.exclusive if key in keys]
    row["parent"] = subtask.parent
    row["reference"] = None if question.reference is None else question.reference.model_dump_json()
    return row


# Twins: studies of the same hearts without their lesions, known by their names.
LESION = "lesion"  # the control that asks the questions on twins, which no other arm asks
_SUFFIX = "-without-lesion"
TWIN = f"{_SUFFIX}$"  # regular expression of the studies that are twins


def twin_of(study_id: str) -> str:
    """Return the name of a study's twin."""
    return study_id + _SUFFIX


def is_twin(study_id: str) -> bool:
    """Return whether a study is another one's twin."""
    return study_id.endswith(_SUFFIX)


def original_of(twin: str) -> str:
    """Return the study that a twin was made from, or the question that a question on a twin repeats."""
    return twin.replace(_SUFFIX, "", 1)
