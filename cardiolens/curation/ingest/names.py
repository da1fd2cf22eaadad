"""Parse names of NIfTI files and folders for subject, phase and mask; the names are never written."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from cardiolens.curation.ingest.words import is_phrase, words_of

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
_NUMBERED = re.compile(r"(img|image|im|vol|volume|slice|slc|sl|z|part|echo|e|file|stack|[234]d|desc|rec)\d*")
_SERIES = re.compile(r"(series|ser|se|s|scan|run|acq)?\d+")  # may number series as well as people
_PLAIN = re.compile(  # names no person, wherever it stands
    r"series|scan|run|acq|files|nifti|dicom|nii|mri?|cmr|anat|func|data|images|export|crop|orig|original|raw|bold|task"
    r"|out|tmp|new|untitled|unnamed|subjects?|patients?|cases?|study|studies|derivatives|sourcedata|rawdata|training"
    r"|testing|train|test|validation|val|database|dataset|heart|cardiac|axis|view|chamber|long|lax|la|left|ventric\w+|lv"
)
_SITE = re.compile(
    r"(site|cent(er|re)|hospital|clinic|batch|cohort|group|part|fold|disc|disk|cd|dvd)[-_ ]?\w{0,3}"
    r"|siemens|philips|ge|canon|toshiba|uih|controls?|healthy|volunteers?",
    re.IGNORECASE,
)
_SESSION = re.compile(
    r"(ses|session|visit|v|tp|timepoint|scan|exam|acc|accession|fu|follow-?_?up|baseline|month|year)"
    r"[-_ ]?\d*[a-z]?"
    r"|(19|20)\d\d[-_.]?\d\d[-_.]?\d\d|\d\d[-_.]\d\d[-_.](19|20)\d\d",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Name:
    """Parts of a file's name."""

    folder: str
    words: str  # all words but BIDS entities
    base: str  # without phase and moment: files that share a base are phases of one volume
    rest: str  # without subject and phase
    residue: str  # words that may name a subject
    is_mask: bool
    phase: int | None
    moment: str  # ED, ES or empty

    def contradicts(self, folder: str) -> bool:
        """Return whether the name says another sequence or view than its folder."""
        mine, theirs = words_of(self.words), words_of(folder)
        pairs = ((mine.sequences, theirs.sequences), (mine.views, theirs.views))
        return any(a and b and not set(a) & set(b) for a, b in pairs)


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
    content_marks = _content(tokens)
    base: list[str] = []
    residue: list[str] = []
    rest: list[str] = []
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
            is_subject = not content_marks[index] and _names_subject(token, index)
            (residue if is_subject else rest).append(token)
    words = " ".join(tokens)
    folder = str(PurePosixPath(path).parent)
    return Name(folder, words, "_".join(base), "_".join(rest), "_".join(residue), is_mask, phase, moment)


def _without_entities(text: str) -> str:
    """Remove the BIDS entities of subject, session and task."""
    return re.sub(rf"(?:^|(?<=_))(sub|ses|task)-.*?(?=_(?:{_ENTITIES})-|_[A-Za-z0-9]+$|$)_?", "", text)


def _names_subject(token: str, index: int) -> bool:
    """Return whether a word that is not of the vocabulary may name a person."""
    lower = token.lower()
    if lower.isdigit():
        return index == 0
    if _PLAIN.fullmatch(lower) or _NUMBERED.fullmatch(lower):
        return False
    return index == 0 or not _SERIES.fullmatch(lower)


def _content(tokens: Sequence[str]) -> list[bool]:
    """Return of each word whether it says what is shown, alone or with its neighbours (`short axis`)."""
    marks = [_is_vocabulary(token) for token in tokens]
    for size in (2, 3):
        for start in range(len(tokens) - size + 1):
            phrase = " ".join(tokens[start : start + size])
            if phrase.isascii() and is_phrase(phrase):
                marks[start : start + size] = [True] * size
    return marks


def _is_vocabulary(text: str) -> bool:
    words = words_of(text)
    return bool(words.kind or words.sequences or words.views or words.component or words.state) or bool(
        words.technique
    )


def is_content(folder: str) -> bool:
    """Return whether a folder's name says nothing but what it holds (`cine_sax`, `anat`, `T2`)."""
    tokens = re.findall(r"[^\W_]+", folder)
    content = _content(tokens)
    plain = [
        bool(_PLAIN.fullmatch(t.lower()) or _MASKS.fullmatch(t.lower()) or t.lower() in _MOMENTS)
        for t in tokens
    ]
    numbers = [bool(_SERIES.fullmatch(t.lower()) or _NUMBERED.fullmatch(t.lower())) for t in tokens]
    is_plain = all(any(each) for each in zip(content, plain, numbers, strict=True))
    return is_plain and (any(content) or any(plain))


def says_content(folder: str) -> bool:
    """Return whether a folder's name says what it holds, beside other words."""
    return is_content(folder) or any(_content(re.findall(r"[^\W_]+", folder)))


def numbers_shared(folders: Sequence[str]) -> set[str]:
    """Return the folders that begin with the same long number as another: one person's files, perhaps."""
    first = {folder: match[0] for folder in folders if (match := re.match(r"\d{5,}(?!\d)", folder))}
    times = Counter(number for number in first.values() if not is_session(number))
    return {folder for folder, number in first.items() if 1 < times[number] < len(folders)}


def is_site(folder: str) -> bool:
    """Return whether a folder is named as a site, a maker or a part of a cohort."""
    return _SITE.fullmatch(folder) is not None


def is_session(folder: str) -> bool:
    """Return whether a folder is named as a visit, an accession or a date."""
    return _SESSION.fullmatch(folder) is not None


def may_number_series(word: str) -> bool:
    """Return whether a word of a name may number series instead of people: 501, S001, scan3."""
    return _SERIES.fullmatch(word.lower()) is not None


def subject_entity(path: str) -> tuple[str, str] | None:
    """Return patient and examination by the BIDS entities `sub-` and `ses-`; None without the first."""
    parts = PurePosixPath(path).parts
    for index, part in enumerate(parts):
        is_file = index == len(parts) - 1
        match = re.match(rf"sub-(.+?)(?=_(?:{_ENTITIES})-|\.|$)" if is_file else r"sub-(.+)", part)
        if match is not None:
            words = match[1].split("_")
            first_content = next((n for n, word in enumerate(words) if n and is_content(word)), len(words))
            patient = "/".join([*parts[:index], f"sub-{'_'.join(words[:first_content])}"])
            session = re.search(r"(?:^|[/_])(ses-[A-Za-z0-9]+)", "/".join(parts[index:]))
            return patient, f"{patient}/{session[1]}" if session else patient
    return None
