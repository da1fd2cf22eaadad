"""Parse names of NIfTI files and folders for subject, phase and mask; the names are never written."""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import PurePosixPath

_SUFFIX = re.compile(r"\.(nii|nii\.gz|hdr|img|hdr\.gz|img\.gz|json|gz)$", re.IGNORECASE)
_MASKS = re.compile(
    r"(gt|seg|segs|segm|segmentation|segmentations|mask|masks|label|labels|dseg|probseg|manual|contours?|annot\w*"
    r"|roi|groundtruth|labelmap)\d*"
)
_ENTITIES = "ses|task|acq|ce|rec|dir|run|echo|part|chunk|desc|space|label|res|mod|inv|den|seg|hemi"
_MOMENTS = {
    "ed": "ED",
    "es": "ES",
    "diastole": "ED",
    "systole": "ES",
    "enddiastole": "ED",
    "endsystole": "ES",
}
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
    tokens = re.findall(r"[^\W_]+", _without_entities(unicodedata.normalize("NFC", stem(path))))
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


def _without_entities(text: str) -> str:
    """Remove the BIDS entities of subject, session and task."""
    return re.sub(rf"(?:^|(?<=_))(sub|ses|task)-.*?(?=_(?:{_ENTITIES})-|_[A-Za-z0-9]+$|$)_?", "", text)


def is_mask_word(word: str) -> bool:
    """Return whether a word in small letters tells a mask."""
    return _MASKS.fullmatch(word) is not None


def moment_of(word: str) -> str:
    """Return the moment that a word in small letters tells: ED, ES or nothing."""
    return _MOMENTS.get(word, "")
