"""Parse names of NIfTI files for phase, moment and mask; the names are never written."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_SUFFIX = re.compile(r"\.(nii|nii\.gz|hdr|img|hdr\.gz|img\.gz|json|gz)$", re.IGNORECASE)
_MASKS = re.compile(
    r"(gt|seg|segs|segm|segmentation|segmentations|mask|masks|label|labels|dseg|probseg|manual|contours?|annot\w*"
    r"|roi|groundtruth|labelmap)\d*"
)
_MOMENTS = {
    "ed": "ED",
    "es": "ES",
    "diastole": "ED",
    "systole": "ES",
    "enddiastole": "ED",
    "endsystole": "ES",
}
_ENTITIES = re.compile(r"(?:^|(?<=_))(sub|ses|task)-[A-Za-z0-9]+_?")  # of BIDS: no words of a view
_DATE = re.compile(r"(19|20)\d\d-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(\d{6})?")
_PHASE = re.compile(r"(?:frame|phase|fr|cardphase|timeframe|time|tp)(\d+)")
_PHASE_WORDS = {"frame", "phase", "fr", "timeframe", "time", "tp"}


@dataclass(frozen=True, slots=True)
class Name:
    """Parts of a file's name."""

    folder: str
    words: str  # all words but BIDS entities
    base: str  # without phase and moment: files that share a base are phases of one volume
    is_mask: bool
    phase: int | None
    moment: str  # ED, ES or empty


def natural(path: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that orders numbers by value: run-2 before run-10."""
    parts = re.split(r"(\d+)", path)
    return tuple((0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in parts)


def stem(path: str) -> str:
    """Return a file's name without folder and suffix."""
    return _SUFFIX.sub("", PurePosixPath(path).name)


def name_of(path: str) -> Name:
    """Parse the name of a file, given its path below the source."""
    tokens = [token for token in re.split(r"[\W_]+", _ENTITIES.sub("", stem(path))) if token]
    base: list[str] = []
    phase: int | None = None
    moment, is_mask = "", False
    skip = False
    for index, token in enumerate(tokens):
        lower = token.lower()
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        if skip:
            skip = False
        elif _MASKS.fullmatch(lower):
            is_mask = True
        elif lower in _MOMENTS:
            moment = _MOMENTS[lower]
        elif (match := _PHASE.fullmatch(lower)) is not None:
            phase = int(match[1])
        elif lower in _PHASE_WORDS and following.isdigit():
            phase, skip = int(following), True
        else:
            base.append(token)
    words = " ".join(tokens)
    folder = str(PurePosixPath(path).parent)
    return Name(folder, words, "_".join(base), is_mask, phase, moment)


def is_mask_word(word: str) -> bool:
    """Return whether a word in small letters tells a mask."""
    return _MASKS.fullmatch(word) is not None


def moment_of(word: str) -> str:
    """Return the moment that a word in small letters tells: ED, ES or nothing."""
    return _MOMENTS.get(word, "")


def is_date(text: str) -> bool:
    """Return whether a text is a day, perhaps with its time, as 20240229 or 2024-02-29."""
    return _DATE.fullmatch(text) is not None
