"""One record of a benchmark as a question on images: every mapped column checked."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from string import ascii_uppercase
from typing import Any, NoReturn

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.benchmarks.case_map import (
    CaseMap,
    Column,
    Columns,
    Fault,
    LetteredText,
    SameOptions,
    SameText,
    expanded,
)
from cardiolens.benchmarks.record_files import Place, Row, quoted, value_of
from cardiolens.protocol.tasks.legal import fold, option_problems, reserved_in

UNKNOWN = "unknown"
_BANDS = {1: "1", 3: "2-3", 6: "4-6", 10: "7-10", 20: "11-20"}  # of numbers of images, by the largest
_LONGEST_ID = 64  # characters; a longer text in a column of base64 is an image
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_MARK = re.compile(r"(?:^|(?<=\s))\(?([A-Z])(?:[.:)]|\.\))\s+")  # of an option in a text
_LETTER = re.compile(r"\s*\(?([A-Z])(?![A-Za-z])\)?\s*[.:)]?\s*")
_PLACEHOLDER = re.compile(r"<image>|<ImageHere>", re.IGNORECASE)
_HEADING = re.compile(r"(?:options|choices)\s*:?\s*$", re.IGNORECASE)

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CaseImage:
    """One image: its file below the folder of the data, or the column and item of a row that holds it."""

    path: str
    number: int = 0  # from 1
    caption: str = ""  # withheld: it bears the answer
    modality: str = UNKNOWN
    place: Place | None = None  # row that holds the image
    column: str = ""
    item: int | None = None  # of a list

    @property
    def name(self) -> str:
        """Return what messages call the image."""
        return self.path or f"the image in {self.column}"

    @property
    def source(self) -> tuple[object, ...]:
        """Return what distinguishes two images of one benchmark."""
        return (self.path,) if self.path else (self.place, self.column, self.item)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its options in the order of the data; `key` is its id, empty if it has none.

    Without options, `names` are the true number, or every name that is right in a ranking.
    """

    key: str
    text: str
    options: tuple[str, ...] = ()
    answer: tuple[int, ...] = ()  # places of the right options
    multi: bool = False
    names: tuple[str, ...] = ()
    subtask: str | None = None  # without options


@dataclass(frozen=True, slots=True)
class Case:
    """Images and texts as a study, with the questions on them: one of a record, all of a benchmark."""

    place: Place
    patient: str
    images: tuple[CaseImage, ...]
    history: str
    findings: str
    groups: Mapping[str, str]
    questions: tuple[Question, ...]
    number: int = 0  # of its row; where records have ids, of the case in the order of the files


class LeftOut(Exception):  # noqa: N818  (nothing is wrong)
    """A record that is not asked; its message is the reason."""


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Reads the records of one file by a map."""

    columns: CaseMap
    root: Path  # the folder of the data
    path: Path
    embedded: Collection[str]  # columns of the file that hold images
    by_id: Mapping[str, Place]  # rows whose images other rows name by id

    def read(self, row: Row) -> Case:
        """Read a record; InputError names the column that is wrong, LeftOut why it is not asked."""
        if row.error:
            raise InputError(row.error)
        record, columns = row.record, self.columns
        for column, choice in columns.only.items():
            value = line_of(record, column)
            reasons = {fold(key): reason for key, reason in choice.leave_out.items()}
            if fold(value) in reasons:
                raise LeftOut(reasons[fold(value)])
            if fold(value) not in map(fold, choice.ask):
                raise wrong(column, value, " or ".join([*choice.ask, *choice.leave_out]))
        question = self._question(record)
        patient = line_of(record, columns.patient)
        images = self._images(row, patient)
        groups = {name: _group(record, of_group) for name, of_group in columns.groups.items()}
        if columns.images.most > 1:
            modalities = {image.modality for image in images if columns.images.modality}
            groups = {"images": _band(len(images)), **groups}
            groups |= {f"modality:{name}": "shown" for name in sorted(modalities)}
        history, findings = (text_of(record, column) for column in (columns.history, columns.findings))
        return Case(row.place, patient, images, history, findings, groups, (question,))

    def _question(self, record: Record) -> Question:
        columns = self.columns
        asks = columns.question
        text = asks.text if isinstance(asks, SameText) else line_of(record, asks)
        key, text = line_of(record, columns.id), _PLACEHOLDER.sub(" ", text)
        if columns.subtask is not None:
            names = _names(record, columns.answer)
            return Question(key, " ".join(text.split()), names=names, subtask=columns.subtask)
        text, pairs = self._options(record, text)
        letters, options = [letter for letter, _ in pairs], tuple(option for _, option in pairs)
        multi = columns.multi if isinstance(columns.multi, bool) else _flag(record, columns.multi)
        if len(options) < 2:
            self._fault("few", "options", list(options), "two or more")
        if len({fold(option) for option in options}) < len(options):
            self._fault("twins", "options", list(options), "texts that differ")
        for problem in option_problems(pairs):
            raise InputError(f"options: {problem}")
        answer = self._answer(record, letters, options, multi=multi)
        return Question(key, " ".join(text.split()), options, answer, multi)

    def _fault(self, fault: Fault, name: str, value: object, expected: str) -> NoReturn:
        if fault in self.columns.faults:
            raise LeftOut(self.columns.faults[fault])
        raise wrong(name, value, expected)

    def _options(self, record: Record, question: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the question without options, and letters and texts of these."""
        options = self.columns.options
        if isinstance(options, LetteredText):
            text = _checked(options.lettered_in, value_of(record, options.lettered_in))
            return _lettered(_PLACEHOLDER.sub(" ", text), question)
        if isinstance(options, str):
            return question, _pairs(value_of(record, options), options)
        texts = (
            options.text if isinstance(options, SameOptions) else [line_of(record, name) for name in options]
        )
        return question, [
            (letter, text) for letter, text in zip(ascii_uppercase, texts, strict=False) if text
        ]

    def _answer(
        self, record: Record, letters: Sequence[str], options: Sequence[str], *, multi: bool
    ) -> tuple[int, ...]:
        name = str(self.columns.answer)
        value = value_of(record, name)
        if isinstance(value, list) and multi:
            value = "; ".join(map(str, value))
        if value is None or isinstance(value, bool | dict | list) or not fold(str(value)):
            raise wrong(name, value, "letters or texts of options")
        chosen = _chosen(str(value), letters, options)
        if chosen is None:
            legal = [f"{letter}. {option}"[:40] for letter, option in zip(letters, options, strict=True)]
            self._fault("truth", name, value, f"of {'; '.join(legal)}")
        if len(chosen) > 1 and not multi:
            raise wrong(name, value, "one option, as the map has no `multi`")
        return chosen

    def _images(self, row: Row, patient: str) -> tuple[CaseImage, ...]:
        columns = self.columns.images
        is_slotted = any(isinstance(name, str) and "{n" in name for name in (columns.path, columns.bytes))
        images = self._slots(row, patient) if is_slotted else self._listed(row, patient)
        if not images:
            raise wrong(str(columns.path or columns.bytes or columns.base64), None, "at least one image")
        if len(images) > columns.most:
            raise InputError(
                f"has {len(images)} images; expected at most {columns.most}; correct the record, or "
                "images.most of the map"
            )
        sources = [image.source for image in images]
        if twice := [image.name for at, image in enumerate(images) if image.source in sources[:at]]:
            raise InputError(f"names {twice[0]} twice; expected each image once; remove one")
        return tuple(
            replace(
                image,
                number=number,
                caption=text_of(row.record, _numbered(columns.caption, number)),
                modality=text_of(row.record, _numbered(columns.modality, number)) or UNKNOWN,
            )
            for number, image in enumerate(images, start=1)
        )

    def _slots(self, row: Row, patient: str) -> list[CaseImage]:
        """Return images that stand in numbered columns, as many as the record counts or fills."""
        columns, record, images = self.columns.images, row.record, list[CaseImage]()
        names = [
            tuple((_numbered(name, number) or "").removesuffix("?") for name in (columns.path, columns.bytes))
            for number in range(1, columns.most + 1)
        ]
        slots = [(path, held, value_of(record, path)) for path, held in names]
        filled_in = {name for name, value in record.items() if name and not _is_blank(value)}
        held_in = self.embedded if columns.count else filled_in
        filled = [n for n, (_, held, value) in enumerate(slots, 1) if held in held_in or not _is_blank(value)]
        count = _count(record, columns.count, columns.most) if columns.count else max(filled, default=0)
        for path, held, value in slots[:count]:
            is_held = held in held_in
            file = "" if is_held and _is_blank(value) else self._path(path or held, value, patient)
            held_by = row.place if is_held else None
            images.append(CaseImage(file, place=held_by, column=held if is_held else ""))
        if beyond := [path for path, _, value in slots[count:] if not _is_blank(value)]:
            raise InputError(
                f"{beyond[0]} is given, but {columns.count} is {count}; expected null or no column beyond "
                "it; correct one of them"
            )
        return images

    def _listed(self, row: Row, patient: str) -> list[CaseImage]:
        """Return images that stand in columns or lists, in their order."""
        columns = self.columns.images
        if columns.path is not None:
            return [
                CaseImage(self._path(column, value, patient))
                for column in expanded(columns.path, columns.most)
                for value in listed(value_of(row.record, column.removesuffix("?")), column)
            ]
        if columns.bytes is not None:
            return [
                CaseImage("", place=row.place, column=column, item=item)
                for column in expanded(columns.bytes, columns.most)
                for item in _items(value_of(row.record, column))
            ]
        return [
            image for column in expanded(columns.base64, columns.most) for image in self._encoded(row, column)
        ]

    def _path(self, column: str, value: object, patient: str) -> str:
        is_path = isinstance(value, str) and value.strip() and not value.startswith("/") and "\\" not in value
        if not is_path or ".." in PurePosixPath(str(value)).parts:
            raise wrong(column, value, "a path below the folder of the data")
        folders = [folder.format(patient=patient) for folder in self.columns.images.folders]
        candidates = [f"{folder}/{value}" if folder else str(value) for folder in folders]
        below = self.path.parent.relative_to(self.root)
        if below.parts:
            candidates += [str(below / candidate) for candidate in candidates]
        return next(
            (path for path in candidates[1:] and candidates if (self.root / path).is_file()), candidates[0]
        )

    def _encoded(self, row: Row, column: str) -> list[CaseImage]:
        name = column.removesuffix("?")
        value = value_of(row.record, name)
        if isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST_ID:
            if value.strip() not in self.by_id:
                raise wrong(name, value, "an image as base64, or the id of an earlier record")
            return [CaseImage("", place=self.by_id[value.strip()], column=name)]
        values = listed(value, name)
        items = range(len(values)) if values != [value] else [None]
        return [CaseImage("", place=row.place, column=name, item=item) for item in items]


def wrong(name: str, value: object, expected: str) -> InputError:
    """The error that a column does not hold what it must."""
    return InputError(
        f"{name} is {quoted(value)}; expected {expected}; correct the file, or download it anew"
    )


def text_of(record: Record, column: Column | None) -> str:
    """Return a text with its lines, of a number its digits; empty without a column, or if it may be blank.

    InputError if it is blank or of another type.
    """
    if column is None:
        return ""
    name = column.removesuffix("?")
    value = value_of(record, name)
    return "" if column.endswith("?") and _is_blank(value) else _checked(name, value).strip()


def line_of(record: Record, column: Column | None) -> str:
    """Return a text on one line."""
    return " ".join(text_of(record, column).split())


def _checked(name: str, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and not _is_blank(value):
        value = str(value)
    if not isinstance(value, str) or not fold(value):
        raise wrong(name, value, "text")
    if problem := reserved_in(value):
        raise InputError(f"{name} {problem}")
    return value


def _is_blank(value: object) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, str) and not value.strip())


def _group(record: Record, columns: Columns) -> str:
    for column in (columns,) if isinstance(columns, str) else columns:
        name = column.removesuffix("?")
        value = value_of(record, name)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if not _is_blank(value) or not column.endswith("?"):
            return " ".join(_checked(name, value).split())
    return UNKNOWN


def _names(record: Record, columns: Columns) -> tuple[str, ...]:
    """Return the answers in columns, each a text or a list of texts, without doubles; at least one."""
    found: dict[str, str] = {}
    for column in expanded(columns, 1):
        name = column.removesuffix("?")
        values = listed(value_of(record, name), name)
        if not values and not column.endswith("?"):
            raise wrong(name, None, "an answer")
        for text in values:
            found.setdefault(fold(_checked(name, text)), " ".join(str(text).split()))
    return tuple(found.values())


def _flag(record: Record, column: Column) -> bool:
    value = value_of(record, column)
    if (word := str(value).strip().lower()) not in _FLAGS:
        raise wrong(column, value, "true or false")
    return _FLAGS[word]


def _pairs(value: object, name: str) -> list[tuple[str, str]]:
    """Parse options: a list of texts, or an object of texts by letter, or either as JSON."""
    if isinstance(value, str):
        value = _parsed(value, name)
    if isinstance(value, Mapping):
        letters = sorted(key for key in value if value[key] is not None)
        if letters != list(ascii_uppercase[: len(letters)]):
            last = ascii_uppercase[: max(len(value), 2)][-1]
            raise wrong(name, value, f"an object with the keys A to {last}")
        return [(letter, line_of(value, letter)) for letter in letters]
    if not isinstance(value, list) or len(value) > len(ascii_uppercase):
        raise wrong(name, value, "a list of texts, or an object of texts by letter")
    texts = [line_of({name: text}, name) for text in value]
    bare = [_MARK.sub("", text, count=1) for text in texts]
    lettered = [text.lstrip("(")[:1] for text in texts] == list(ascii_uppercase[: len(texts)])
    return list(zip(ascii_uppercase, bare if lettered and bare != texts else texts, strict=False))


def _parsed(text: str, name: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        raise wrong(name, text, "a list or an object, or JSON of one") from None


def _lettered(text: str, question: str) -> tuple[str, list[tuple[str, str]]]:
    """Split a text at its lettered options; letters must rise from A, but the last may be any."""
    marks = list(_MARK.finditer(text))
    while marks and marks[0][1] != "A":
        marks.pop(0)
    letters = [mark[1] for mark in marks]
    if letters != sorted(set(letters)):
        raise InputError(
            f"its options are lettered {', '.join(letters)}; expected each letter once, from A on; correct it"
        )
    ends = [*(mark.start() for mark in marks[1:]), len(text)][: len(marks)]
    pairs = [
        (mark[1], " ".join(text[mark.end() : end].strip(" \t\r\n;,").split()))
        for mark, end in zip(marks, ends, strict=True)
    ]
    if marks and fold(question) == fold(text):
        question = _HEADING.sub("", text[: marks[0].start()].strip()).strip()
    return question, pairs


def _chosen(value: str, letters: Sequence[str], options: Sequence[str]) -> tuple[int, ...] | None:
    """Find the options that an answer names: by the text of one, or by letters with or without texts."""
    folded = [fold(option) for option in options]
    answer = fold(value)
    for candidate in (answer, answer.removesuffix(".")):
        if candidate in folded:
            return (folded.index(candidate),)
    places: list[int] = []
    rest = value
    while rest.strip():
        mark = _LETTER.match(rest)
        if mark is None or mark[1] not in letters or (at := letters.index(mark[1])) in places:
            return None
        after = _after(rest[mark.end() :], options[at])
        if after is None:
            return None
        places.append(at)
        rest = after
    return tuple(sorted(places)) or None


def _after(rest: str, option: str) -> str | None:
    """Return what follows a letter and the text of its option, if that is there; None if other text is."""
    squeezed = " ".join(rest.split())
    if fold(squeezed[: len(option)]) == fold(option):
        squeezed = squeezed[len(option) :].lstrip(" .")
    if not squeezed:
        return ""
    return squeezed[1:] if squeezed[0] in ";," else None


def listed(value: object, name: str) -> list[Any]:
    """Return the values of a list, also of one written as JSON; of another value that alone."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _parsed(value, name)
    if isinstance(value, list):
        return value
    return [] if _is_blank(value) else [value]


def _items(value: object) -> list[int | None]:
    """Return the places of embedded images in their list; None for an image alone."""
    if isinstance(value, list):
        return list(range(len(value)))
    return [] if _is_blank(value) else [None]


def _numbered(column: Columns | None, number: int) -> Column | None:
    return column.format(n=number) if isinstance(column, str) else None


def _count(record: Record, column: str, most: int) -> int:
    count = value_of(record, column)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise wrong(column, count, f"a whole number from 1 to {most}")
    return count


def _band(count: int) -> str:
    return next((band for most, band in _BANDS.items() if count <= most), "21 or more")
