"""One closed question on one picture, and why a record of a benchmark is none."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any, Literal

from cardiolens.base.errors import InputError
from cardiolens.protocol.dialogue.pending import without_marks
from cardiolens.protocol.tasks.option_texts import fold, option_problems

YES_NO = ("Yes", "No")

LeftOut = Literal[
    "open questions, whose free text no rule can call right or wrong",
    "closed questions whose options the data do not name",
    "questions with fewer than two options",
    "questions of which two options read the same",
    "questions whose answer is none of their options",
    "questions in another language than English",
]


@dataclass(frozen=True, slots=True)
class PictureQuestion:
    """A question with its options in the order of the data; `key` names it in the benchmark."""

    key: str
    picture: str  # path of the picture below the folder of the data
    group: str  # what the data say of the picture, e.g. its modality
    question: str
    options: tuple[str, ...]
    answer: int  # place of the right option

    @property
    def is_yes_no(self) -> bool:
        """Return whether the options are Yes and No, which mean the same in every question."""
        return self.options == YES_NO


Answered = tuple[tuple[str, ...], int]  # options, and the place of the right one


def yes_or_no(answer: str) -> Answered | LeftOut:
    """Read the answer of a question that is closed, but has no list of options.

    Only Yes and No are options that need no list; of others, such as a side or a plane, those that were not
    chosen are not in the data.
    """
    folded = fold(answer).removesuffix(".")
    for place, option in enumerate(YES_NO):
        if folded == option.casefold():
            return YES_NO, place
    return "closed questions whose options the data do not name"


def closed_answer(record: Mapping[str, Any]) -> Answered | LeftOut:
    """Read the answer of a record whose `answer_type` says whether it is closed."""
    kind = text_of(record, "answer_type").upper()
    if kind not in ("OPEN", "CLOSED"):
        raise wrong("answer_type", record["answer_type"], "OPEN or CLOSED")
    if kind == "OPEN":
        return "open questions, whose free text no rule can call right or wrong"
    return yes_or_no(text_of(record, "answer"))


def chosen_of(options: tuple[str, ...], answer: str) -> Answered | LeftOut:
    """Find the option that an answer repeats, apart from case and white space.

    InputError for an option that no prompt can list, or no reply name.
    """
    folded = [fold(option) for option in options]
    if len(options) < 2:
        return "questions with fewer than two options"
    if len(set(folded)) < len(folded):
        return "questions of which two options read the same"
    for problem in option_problems(list(zip(ascii_uppercase, options, strict=False))):
        raise InputError(problem)
    if fold(answer) not in folded:
        return "questions whose answer is none of their options"
    return options, folded.index(fold(answer))


def text_of(record: Mapping[str, Any], name: str) -> str:
    """Return a text of a record, of a number its digits; InputError if it is blank or of another type."""
    value = record.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not fold(value):
        raise wrong(name, value, "text")
    if without_marks(value) != value:
        raise InputError(f"{name} holds U+FFFC, U+FDD0 or U+FDD1, reserved for frames and replies; remove it")
    return " ".join(value.split())


def picture_of(record: Mapping[str, Any], name: str, folder: str = "") -> str:
    """Return the path of a record's picture below the folder of the data."""
    value = text_of(record, name)
    parts = PurePosixPath(value).parts
    if value.startswith("/") or ".." in parts or "\\" in value:
        raise wrong(name, value, "a path below the folder of the data")
    return f"{folder}/{value}" if folder else value


def wrong(name: str, value: object, expected: str) -> InputError:
    """The error that a field is not what it must be."""
    as_read = "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)[:60]
    return InputError(f"{name} is {as_read}; expected {expected}; correct the file, or download it anew")
