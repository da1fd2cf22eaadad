"""The files of VQA-RAD: that of the Open Science Framework, or the two that later works split it into."""

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

WHOLE = "VQA_RAD Dataset Public.json"  # of both splits, which `phrase_type` tells apart
_PICTURES = ("VQA_RAD Image Folder", "images")
_TEST = ("test_freeform", "test_para")
_TRAIN = ("freeform", "para")


def source_of(root: Path, split: Split) -> Source:
    """Find the file of a split."""
    names = (WHOLE, f"{split}set.json")
    for name in names:
        if (root / name).is_file():
            return Source(root, root / name, split)
    if any(root.glob("**/*.parquet")):
        raise InputError(
            f"{root}: holds Parquet files, as copies of VQA-RAD that lack answer_type, without which open "
            f"and closed questions cannot be told apart; expected {names[0]!r} of the Open Science Framework"
        )
    raise InputError(
        f"{root}: has no {' or '.join(names)}; expected the folder of the downloaded data; correct "
        "dataset.root"
    )


def records(source: Source) -> Iterator[Located]:
    """Yield the records of a split; the file of both splits has those of the other one left out."""
    for located in listed_records(source.path):
        phrase = located.record.get("phrase_type")
        if source.path.name == WHOLE and phrase not in (*_TEST, *_TRAIN):
            yield located.failing(wrong("phrase_type", phrase, f"one of {', '.join((*_TEST, *_TRAIN))}"))
        elif source.path.name != WHOLE or (phrase in _TEST) == (source.split == "test"):
            yield located


def read(source: Source, record: Mapping[str, Any]) -> PictureQuestion | LeftOut:
    """Read a record; InputError names the field that is wrong."""
    answered = closed_answer(record)
    if isinstance(answered, str):
        return answered
    folder = next((name for name in _PICTURES if (source.root / name).is_dir()), _PICTURES[0])
    return PictureQuestion(
        text_of(record, "qid"),
        picture_of(record, "image_name", folder),
        str(record.get("image_organ") or "unknown").strip(),
        text_of(record, "question"),
        *answered,
    )
