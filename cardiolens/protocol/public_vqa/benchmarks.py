"""A public benchmark as studies: each picture is one, with all closed questions on it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.protocol.medthinkvqa.case import CaseImage
from cardiolens.protocol.medthinkvqa.case_text import told_path
from cardiolens.protocol.medthinkvqa.files import Source, Split
from cardiolens.protocol.public_vqa import omnimedvqa, slake, vqa_rad
from cardiolens.protocol.public_vqa.picture_question import LeftOut, PictureQuestion
from cardiolens.protocol.public_vqa.record_files import Located
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.study.sequences import PICTURE

PROTOCOL = "publicvqa-1"
YES_NO = "V01"  # subtask
BY_OPTIONS = {2: "V02", 3: "V03", 4: "V04"}  # other subtasks: chance is that of the number of options


@dataclass(frozen=True, slots=True)
class _Form:
    """How a benchmark is laid out on disk, how its records are read, and what it says of a picture."""

    source_of: Callable[[Path, Split], Source]
    records: Callable[[Source], Iterator[Located]]
    read: Callable[[Source, Mapping[str, Any]], PictureQuestion | LeftOut]
    group: str


_FORMS = {
    "vqa_rad": _Form(vqa_rad.source_of, vqa_rad.records, vqa_rad.read, "organ"),
    "slake": _Form(slake.source_of, slake.records, slake.read, "modality"),
    "omnimedvqa": _Form(omnimedvqa.source_of, omnimedvqa.records, omnimedvqa.read, "modality"),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture with its questions, prepared like a case of one image."""

    number: int  # in the order in which the data name pictures, from 1
    images: tuple[CaseImage, ...]
    subgroups: Mapping[str, str]
    questions: tuple[PictureQuestion, ...]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What was read of a benchmark: pictures, records that are wrong, and how many are not asked, and why."""

    source: Source
    pictures: Sequence[Picture]
    failed: Mapping[str, str]
    left_out: Mapping[LeftOut, int]

    def write(self, questions: Path) -> None:
        """Write the questions, and beside them the file of texts for prompts, which tells nothing more."""
        names = [(self.source.name_of(picture.number), picture) for picture in self.pictures]
        write_questions(
            questions, [_record(name, question) for name, picture in names for question in picture.questions]
        )
        lines = ({"study": name, "history": "", "modalities": [""], **_NO_GOLD} for name, _ in names)
        disk.write_text(told_path(questions), "".join(json.dumps(line) + "\n" for line in lines))


_NO_GOLD = {"captions": [""], "findings": ""}


def read_benchmark(name: str, root: Path, split: Split) -> Benchmark:
    """Read a benchmark below its folder; no picture is opened."""
    form = _FORMS[name]
    source = form.source_of(root, split)
    questions: dict[str, PictureQuestion] = {}
    places: dict[str, str] = {}
    failed: dict[str, str] = {}
    left_out: Counter[LeftOut] = Counter()
    for at, located in enumerate(form.records(source), start=1):
        try:
            if located.error is not None:
                raise located.error
            question = form.read(source, located.record)
            if isinstance(question, str):
                left_out[question] += 1
            elif question.key in questions:
                raise InputError(f"has the id {question.key!r} of {places[question.key]}; remove one of them")
            else:
                questions[question.key], places[question.key] = question, located.where
        except InputError as error:
            failed[f"{split}-record-{at:05d}"] = f"{located.where}: {error}"
    return Benchmark(source, _pictures(questions.values(), form.group), failed, left_out)


def _pictures(questions: Iterable[PictureQuestion], group: str) -> list[Picture]:
    by_path: dict[str, list[PictureQuestion]] = {}
    for question in questions:
        by_path.setdefault(question.picture, []).append(question)
    return [
        Picture(
            number,
            (CaseImage(number=1, path=path, caption="", modality=""),),
            {group: on_it[0].group},
            tuple(on_it),
        )
        for number, (path, on_it) in enumerate(by_path.items(), start=1)
    ]


def _record(study: str, question: PictureQuestion) -> dict[str, Any]:
    subtask = YES_NO if question.is_yes_no else BY_OPTIONS[len(question.options)]
    return {
        "schema": "qa-1",
        "qa_id": f"{study}:{subtask}:{question.key}",
        "study_id": study,
        "patient_id": study,
        "tier": 1,
        "subtask": subtask,
        "sequence": PICTURE,
        "question": question.question,
        "answer_type": "single",
        "options": [
            {"key": key, "text": text} for key, text in zip(ascii_uppercase, question.options, strict=False)
        ],
        "answer": [ascii_uppercase[question.answer]],
        "origin": "reader",
        "protocol": PROTOCOL,
    }
