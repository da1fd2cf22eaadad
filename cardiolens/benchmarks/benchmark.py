"""A benchmark read by its map: cases as studies, their questions, and what is wrong or not asked."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.benchmarks.case import Case, LeftOut, Question, RecordReader, wrong
from cardiolens.benchmarks.case_map import CaseMap, Column, expanded, read_map
from cardiolens.benchmarks.record_files import Place, Row, columns_of, quoted, rows_of, value_of
from cardiolens.protocol.prompts.case_prompts import told_path
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask, load_catalogue
from cardiolens.protocol.tasks.questions import record_of, write_questions

Split = Literal["train", "test"]


@dataclass(frozen=True, slots=True)
class Source:
    """The files of one split, and the folder below which their images lie."""

    root: Path
    files: tuple[Path, ...]
    split: Split
    columns: CaseMap
    split_column: Column | None = None

    @staticmethod
    def of(root: Path, split: Split, name: str) -> "Source":
        """Find the files of a split below a folder, or take the file that is given; `name` is of its map."""
        columns = read_map(name)
        has_splits = columns.splits or any("{split}" in pattern for pattern in columns.files)
        if split != "test" and not has_splits:
            raise InputError(f"dataset.split={split}: {columns.name} has no splits; leave dataset.split out")
        if root.is_file():
            return Source(root.parent, (root,), split, columns)
        patterns = {pattern.format(split=split): column for pattern, column in columns.files.items()}
        for pattern, column in patterns.items():
            paths = [path for path in sorted(root.glob(pattern)) if not is_housekeeping(path.name)]
            if paths:
                return Source(root, tuple(paths), split, columns, column)
        raise InputError(
            f"{root}: has no {' or '.join(patterns)}; expected {columns.expects}; correct dataset.source"
        )

    def name_of(self, number: int) -> str:
        """Return the name of a case as a study."""
        return f"{self.split}-{number:05d}"

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the split by file and in order, without images that another column counts."""
        without = self.columns.embedded if self.columns.images.count else ()
        for path in self.files:
            self._check_columns(path)
            for row in rows_of(path, without):
                if self.split_column is None or row.error:
                    yield row
                    continue
                value = value_of(row.record, self.split_column)
                named = [split for split, values in self.columns.splits.items() if value in values]
                if not named:
                    legal = [text for texts in self.columns.splits.values() for text in texts]
                    error = wrong(self.split_column, value, f"one of {', '.join(legal)}")
                    yield Row(row.place, row.record, str(error))
                elif self.split in named:
                    yield row

    def _check_columns(self, path: Path) -> None:
        """Raise InputError for a column that the map names and a file with declared columns does not have."""
        present = columns_of(path)
        if present is None:
            return
        for column in self.columns.needed:
            if column not in present and column.split(".")[0] not in present:
                raise InputError(
                    f"{path}: has no column {column!r}, which the map names; expected of {', '.join(present)}"
                    "; correct the map, or write the name with ? at its end where it may be absent"
                )


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What was read of a benchmark: cases, records that are wrong, and how many are not asked, and why."""

    source: Source
    cases: Sequence[Case]
    failed: Mapping[str, str]
    left_out: Mapping[str, int]

    def write(self, questions: Path, protocol: str) -> None:
        """Write the questions, and beside them the texts for prompts."""
        catalogue = load_catalogue(protocol)
        cases = [(self.source.name_of(case.number), case) for case in self.cases]
        write_questions(
            questions,
            [_record(name, case, question, catalogue) for name, case in cases for question in case.questions],
        )
        has_modality = self.source.columns.images.modality is not None
        lines = (
            {
                "study": name,
                "history": case.history,
                "modalities": [image.modality if has_modality else "" for image in case.images],
                "captions": [image.caption for image in case.images],
                "findings": case.findings,
            }
            for name, case in cases
        )
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        disk.write_text(told_path(questions), text)


def read_benchmark(source: Source, protocol: str) -> Benchmark:
    """Read the records of a benchmark; no image is opened.

    A record that is wrong is named with file, row, column and value; so is one that `protocol` has no subtask
    for.
    """
    catalogue, columns = load_catalogue(protocol), source.columns
    read: list[tuple[int, Case]] = []
    places: dict[tuple[str, str], Place] = {}
    by_id: dict[str, Place] = {}  # rows whose images later rows may name
    failed: dict[str, str] = {}
    left_out: Counter[str] = Counter()
    held = {path: set(columns.embedded).intersection(columns_of(path) or ()) for path in source.files}
    readers = {path: RecordReader(columns, source.root, path, held[path], by_id) for path in source.files}
    for at, row in enumerate(source.rows(), start=1):
        try:
            if columns.images.base64 is not None and columns.id is not None:
                by_id.setdefault(str(value_of(row.record, columns.id)), row.place)
            case = readers[row.place.path].read(row)
            (question,) = case.questions
            _check_number(columns, question, subtask_of(catalogue, question))
            key = (case.patient, question.key)
            if question.key and key in places:
                raise InputError(
                    f"has the id {question.key!r} of {places[key]}; remove one of them, or rename it"
                )
            places[key] = case.place
            read.append((at, case))
        except LeftOut as reason:
            left_out[str(reason)] += 1
        except InputError as error:
            failed[f"{source.split}-record-{at:05d}"] = f"{row.place}: {error}"
    return Benchmark(source, _cases(read, source), failed, left_out)


def _cases(read: Iterable[tuple[int, Case]], source: Source) -> list[Case]:
    """Gather the questions on the same images and texts; without ids each record is a case."""
    has_ids = source.columns.id is not None
    grouped: dict[object, list[tuple[int, Case]]] = {}
    for at, case in read:
        shared = (case.patient, _sources(case), case.history, case.findings, tuple(case.groups.items()))
        grouped.setdefault(shared if has_ids else at, []).append((at, case))
    cases: list[Case] = []
    patients: dict[object, str] = {}
    for order, records in enumerate(grouped.values(), start=1):
        at, first = records[0]
        number = order if has_ids else at
        patient = first.patient or patients.setdefault(_sources(first), source.name_of(number))
        questions = tuple(question for _, case in records for question in case.questions)
        cases.append(replace(first, number=number, patient=patient, questions=questions))
    return cases


def _sources(case: Case) -> tuple[object, ...]:
    return tuple(image.source for image in case.images)


def _check_number(columns: CaseMap, question: Question, subtask: Subtask) -> None:
    """Raise InputError for a true answer that is no legal number of its subtask."""
    if subtask.quantity is None:
        return
    answer = "; ".join(question.names)
    try:
        subtask.quantity.read(answer)
    except ValueError as error:
        names = " and ".join(expanded(columns.answer, 1))
        example = subtask.quantity.written(subtask.quantity.low)
        raise InputError(
            f"{names} is {quoted(answer)}, which {error}; expected e.g. {example}; correct the file"
        ) from None


def subtask_of(catalogue: Catalogue, question: Question) -> Subtask:
    """Find the subtask of a question: the map's, that with its options, or the last of their number."""
    if question.subtask is not None:
        subtask = catalogue[question.subtask]
        if subtask.answer_type in ("number", "ranking"):
            return subtask
        raise InputError(f"subtask {subtask.id} of the map has options; expected a number or a ranking")
    kind = "multi" if question.multi else "single"
    fitting = [
        subtask
        for subtask in catalogue.subtasks.values()
        if subtask.answer_type == kind and len(subtask.options) == len(question.options)
    ]
    if not fitting:
        raise InputError(
            f"has {len(question.options)} options and {'several' if question.multi else 'one'} right; "
            f"protocol {catalogue.protocol} has no such subtask; expected one of "
            f"{', '.join(catalogue.subtasks)}"
        )
    exact = (one for one in fitting if tuple(option.text for option in one.options) == question.options)
    return next(exact, fitting[-1])


def _record(study: str, case: Case, question: Question, catalogue: Catalogue) -> dict[str, Any]:
    subtask = subtask_of(catalogue, question)
    return record_of(
        subtask,
        catalogue,
        study,
        qa_id=":".join([study, subtask.id, *([question.key] if question.key else [])]),
        patient_id=case.patient,
        question=question.text,
        options=[
            {"key": key, "text": text} for key, text in zip(ascii_uppercase, question.options, strict=False)
        ],
        answer=[ascii_uppercase[at] for at in question.answer] or list(question.names),
        origin="reader",
    )
