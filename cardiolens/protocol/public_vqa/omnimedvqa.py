"""The files of OmniMedVQA's open part: one list of records for each of the sets that it was made of."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.protocol.medthinkvqa.files import Source, Split
from cardiolens.protocol.public_vqa.picture_question import (
    LeftOut,
    PictureQuestion,
    chosen_of,
    picture_of,
    text_of,
)
from cardiolens.protocol.public_vqa.record_files import Located, listed_records

OPEN_PART = ("QA_information", "Open-access")
_OPTIONS = ("option_A", "option_B", "option_C", "option_D")


def source_of(root: Path, split: Split) -> Source:
    """Find the folder of the records; the benchmark has no splits."""
    if split != "test":
        raise InputError(f"dataset.split={split}: OmniMedVQA has no splits; leave dataset.split out")
    for top in (root, root / "OmniMedVQA"):
        if top.joinpath(*OPEN_PART).is_dir():
            return Source(top, top.joinpath(*OPEN_PART), split)
    raise InputError(
        f"{root}: has no {'/'.join(OPEN_PART)}; expected the folder of the unpacked data, with Images/ "
        f"beside {OPEN_PART[0]}/; correct dataset.root"
    )


def records(source: Source) -> Iterator[Located]:
    """Yield the records of all files, in the order of their names."""
    files = sorted(path for path in source.path.glob("*.json") if not is_housekeeping(path.name))
    if not files:
        raise InputError(f"{source.path}: holds no .json file; expected one for each set; download it anew")
    for path in files:
        yield from listed_records(path)


def read(_source: Source, record: Mapping[str, Any]) -> PictureQuestion | LeftOut:
    """Read a record; InputError names the field that is wrong. Options that are absent or blank are none."""
    options = tuple(text_of(record, name) for name in _OPTIONS if not _is_blank(record.get(name)))
    answered = chosen_of(options, text_of(record, "gt_answer"))
    if isinstance(answered, str):
        return answered
    group = record.get("modality_type") or record.get("modality") or "unknown"  # one record has the second
    return PictureQuestion(
        text_of(record, "question_id"),
        picture_of(record, "image_path"),
        str(group).strip(),
        text_of(record, "question"),
        *answered,
    )


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
