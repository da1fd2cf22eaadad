"""One case of MedThinkVQA: its record checked field by field (protocol 16.15)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Protocol

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.protocol.dialogue.pending import without_marks
from cardiolens.protocol.tasks.option_texts import option_problems

LETTERS = ("A", "B", "C", "D", "E")
MOST_IMAGES = 49
UNKNOWN = "unknown"
PREDICTION = ("prediction", "prediction_rationale", "prediction_twi")  # what a submission adds

_TEXTS = ("title", "discussion", "correct_answer_text", "interval_text", "IMAGING_FINDINGS")
_ICD = ("ICD Chapter", "ICD Block", "ICD Category")
_OF_IMAGE = ("id", "path", "caption", "modality", "sub_modality")


@dataclass(frozen=True, slots=True)
class CaseImage:
    """One image slot: its file below the root, and its caption and modality."""

    number: int  # from 1
    path: str
    caption: str  # withheld: it bears the answer
    modality: str


class Pictured(Protocol):
    """What is prepared as a study of images: a case, or a picture of a public benchmark."""

    @property
    def number(self) -> int: ...

    @property
    def images(self) -> tuple[CaseImage, ...]: ...

    @property
    def subgroups(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Case:
    """One case; readers see only the history, the images and the options."""

    number: int  # line or row of the file, from 1
    history: str
    options: tuple[str, ...]  # texts in the order of LETTERS
    images: tuple[CaseImage, ...]
    answer: str
    findings: str
    chapter: str
    longitudinal: bool | None

    @property
    def subgroups(self) -> dict[str, str]:
        """Return the subgroups for scores, by attribute; each modality is an attribute."""
        modalities = {image.modality for image in self.images}
        return {
            "images": _band(len(self.images)),
            "icd_chapter": self.chapter,
            "longitudinal": {True: "yes", False: "no", None: UNKNOWN}[self.longitudinal],
            **{f"modality:{name}": "shown" for name in sorted(modalities)},
        }


def _band(count: int) -> str:
    bands = ((1, 1), (2, 3), (4, 6), (7, 10), (11, 20), (21, MOST_IMAGES))
    low, high = next(band for band in bands if band[0] <= count <= band[1])
    return str(low) if low == high else f"{low}-{high}"


def field_of(number: int, name: str) -> str:
    """Return the name of a field of an image slot, e.g. image_07_path."""
    return f"image_{number:02d}_{name}"


def read_case(record: Mapping[str, Any], number: int, *, embeds: bool = False) -> Case:
    """Parse a record; InputError names the field, the value, the legal values and the remedy.

    `embeds`: an image may have no path, because the file embeds it.
    """
    for name in (*_TEXTS, *_ICD):
        _text(record, name)
    timepoints = record.get("timepoint_count")
    if timepoints is not None and not _is_count(timepoints):
        raise _wrong("timepoint_count", timepoints, "a whole number or null")
    return Case(
        number=number,
        history=_needed(record, "CLINICAL_HISTORY"),
        options=_options(record.get("options")),
        images=_images(record, embeds=embeds),
        answer=_answer(record.get("correct_answer")),
        findings=_text(record, "IMAGING_FINDINGS"),
        chapter=_text(record, "ICD Chapter") or UNKNOWN,
        longitudinal=_flag(record.get("is_longitudinal")),
    )


def _wrong(name: str, value: object, expected: str) -> InputError:
    text = "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)[:60]
    return InputError(f"{name} is {text}; expected {expected}; correct the file, or download it anew")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(record: Mapping[str, Any], name: str) -> str:
    """Return a text field; empty if it is missing or null."""
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(name, value, "text or null")
    if without_marks(value) != value:
        raise InputError(f"{name} holds U+FFFC, U+FDD0 or U+FDD1, reserved for frames and replies; remove it")
    return value.strip()


def _needed(record: Mapping[str, Any], name: str) -> str:
    if not (text := _text(record, name)):
        raise _wrong(name, record.get(name), "text")
    return text


def _options(value: object) -> tuple[str, ...]:
    """Parse the texts of the five options, from an object or its JSON."""
    pairs = value
    if isinstance(pairs, str):
        try:
            pairs = parse_json(pairs)
        except ValueError:
            raise _wrong("options", value, "an object, or JSON of one, with the keys A to E") from None
    if not isinstance(pairs, Mapping) or sorted(pairs) != list(LETTERS):
        raise _wrong("options", pairs, "an object with exactly the keys A to E")
    texts = tuple(_needed(pairs, letter) if pairs[letter] is not None else "" for letter in LETTERS)
    for letter, text in zip(LETTERS, texts, strict=True):
        if not text:
            raise _wrong(f"options.{letter}", pairs[letter], "text")
    for problem in option_problems(list(zip(LETTERS, texts, strict=True))):
        raise InputError(f"{problem}; correct the file, or download it anew")
    return texts


def _answer(value: object) -> str:
    if value not in LETTERS:
        raise _wrong("correct_answer", value, "one of A, B, C, D, E")
    return str(value)


def _flag(value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise _wrong("is_longitudinal", value, "true, false or null")
    return value


def _images(record: Mapping[str, Any], *, embeds: bool) -> tuple[CaseImage, ...]:
    count = record.get("image_count")
    if not _is_count(count) or not 1 <= int(str(count)) <= MOST_IMAGES:
        raise _wrong("image_count", count, f"a whole number from 1 to {MOST_IMAGES}")
    beyond = range(int(str(count)) + 1, MOST_IMAGES + 1)
    for name in (field_of(number, part) for number in beyond for part in _OF_IMAGE):
        if record.get(name):
            raise InputError(
                f"{name} is given, but image_count is {count}; expected null or no field beyond it; correct "
                "image_count or remove the field"
            )
    return tuple(_image(record, number, embeds=embeds) for number in range(1, int(str(count)) + 1))


def _image(record: Mapping[str, Any], number: int, *, embeds: bool) -> CaseImage:
    texts = {part: _text(record, field_of(number, part)) for part in _OF_IMAGE}
    path, name = texts["path"], field_of(number, "path")
    parts = PurePosixPath(path).parts
    if (not path and not embeds) or path.startswith("/") or ".." in parts or "\\" in path:
        raise _wrong(
            name, record.get(name), "a path below the folder of the data, e.g. images/case00001/a.jpg"
        )
    return CaseImage(number, path, texts["caption"], texts["modality"] or UNKNOWN)
