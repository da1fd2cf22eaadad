"""The files of SLAKE: one list of records per split, in two languages, and a folder per picture."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.protocol.medthinkvqa.files import Source, Split
from cardiolens.protocol.public_vqa.picture_question import (
    LeftOut,
    PictureQuestion,
    closed_answer,
    picture_of,
    text_of,
    wrong,
)
from cardiolens.protocol.public_vqa.record_files import Located, listed_records

_LANGUAGES = ("en", "zh")


def source_of(root: Path, split: Split) -> Source:
    """Find the file of a split."""
    path = root / f"{split}.json"
    if not path.is_file():
        raise InputError(
            f"{root}: has no {path.name}; expected the folder of the downloaded data, with imgs/ beside that "
            "file (unpack imgs.zip); correct dataset.root"
        )
    return Source(root, path, split)


def records(source: Source) -> Iterator[Located]:
    """Yield the records of a split."""
    return listed_records(source.path)


def read(source: Source, record: Mapping[str, Any]) -> PictureQuestion | LeftOut:
    """Read a record; InputError names the field that is wrong."""
    language = text_of(record, "q_lang")
    if language not in _LANGUAGES:
        raise wrong("q_lang", language, " or ".join(_LANGUAGES))
    if language != "en":
        return "questions in another language than English"
    answered = closed_answer(record)
    if isinstance(answered, str):
        return answered
    return PictureQuestion(
        text_of(record, "qid"),
        picture_of(record, "img_name", "imgs"),
        str(record.get("modality") or "unknown").strip(),
        text_of(record, "question"),
        *answered,
    )
