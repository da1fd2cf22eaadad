"""Parse names of NIfTI files and folders for subject, phase and mask; the names are never written."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from cardiolens.curation.ingest.words import words_of

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
_PHASE = re.compile(r"(?:frame|phase|fr|cardphase|timeframe|time|tp)(\d+)")
_PHASE_WORDS = {"frame", "phase", "fr", "timeframe", "time", "tp"}
_RUNNING = re.compile(
    r"(series|ser|se|scan|run|acq|img|image|vol|volume|slice|sl|slc|s|im|file|nifti|dicom|mri?|cmr|anat|func"
    r"|data|images?|nii|export|stack|crop|orig|original|raw|[234]d|z|part|echo|e|bold|desc|rec|task|out|tmp|new|untitled"
    r"|unnamed|subjects?|patients?|cases?|studies|study|derivatives|sourcedata|rawdata|training|testing|train|test"
    r"|validation|database)\d*"
)
_WHOLE = re.compile(r"(subject|patient|case|study)\d+")


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


def natural(path: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that orders numbers by value: run-2 before run-10."""
    parts = re.split(r"(\d+)", path)
    return tuple((0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in parts)


def stem(path: str) -> str:
    """Return a file's name without folder and suffix."""
    return _SUFFIX.sub("", PurePosixPath(path).name)


def name_of(path: str) -> Name:
    """Parse the name of a file, given its path below the source."""
    tokens = [token for token in re.split(r"[^A-Za-z0-9]+", _without_entities(stem(path))) if token]
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
            is_subject = _names_subject(token, index, len(tokens))
            (residue if is_subject else rest).append(token)
    words = " ".join(tokens)
    folder = str(PurePosixPath(path).parent)
    return Name(folder, words, "_".join(base), "_".join(rest), "_".join(residue), is_mask, phase, moment)


def _without_entities(text: str) -> str:
    """Remove the BIDS entities of subject, session and task."""
    return re.sub(r"(?:^|(?<=_))(sub|ses|task)-[A-Za-z0-9]+_?", "", text)


def _names_subject(token: str, index: int, count: int) -> bool:
    lower = token.lower()
    if lower.isdigit():
        return index == 0 and count > 1
    if _WHOLE.fullmatch(lower):
        return True
    return not (_RUNNING.fullmatch(lower) or _is_vocabulary(token))


def _is_vocabulary(text: str) -> bool:
    words = words_of(text)
    return bool(words.kind or words.sequences or words.views or words.component or words.state) or bool(
        words.technique
    )


def subjects(paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Map each path below the source to the keys of its patient and its study.

    BIDS entities (`sub-`, `ses-`) decide. Otherwise a folder is one subject, unless its file names look like
    several subjects: they differ only by a number, or by the words before the same remaining words.
    """
    by_folder: dict[str, list[str]] = defaultdict(list)
    subject_of: dict[str, tuple[str, str]] = {}
    for path in paths:
        entity = _bids(path)
        if entity is not None:
            subject_of[path] = entity
        else:
            by_folder[_subject_folder(path)].append(path)
    for folder, members in by_folder.items():
        names = {path: name_of(path) for path in members}
        several = _are_several_subjects(list(names.values()))
        for path, name in names.items():
            key = f"{folder}/{name.residue}" if several and name.residue else folder
            subject_of[path] = (key, key)
    return subject_of


def _bids(path: str) -> tuple[str, str] | None:
    parts = PurePosixPath(path).parts
    for index, part in enumerate(parts):
        match = re.match(r"sub-([A-Za-z0-9]+)", part)
        if match is not None:
            patient = "/".join([*parts[:index], f"sub-{match[1]}"])
            session = re.search(r"(?:^|[/_])(ses-[A-Za-z0-9]+)", "/".join(parts[index:]))
            return patient, f"{patient}/{session[1]}" if session else patient
    return None


def _subject_folder(path: str) -> str:
    """Return the closest folder whose name may identify a subject, not only its content."""
    parts = list(PurePosixPath(path).parent.parts)
    while (
        parts
        and all(
            _RUNNING.fullmatch(token) or token in _MOMENTS or _MASKS.fullmatch(token) or _is_vocabulary(token)
            for token in re.split(r"[^a-z0-9]+", parts[-1].lower())
            if token and not _WHOLE.fullmatch(token)
        )
        and not any(_WHOLE.fullmatch(token) for token in re.split(r"[^a-z0-9]+", parts[-1].lower()))
    ):
        parts.pop()
    return "/".join(parts)


def _are_several_subjects(names: Sequence[Name]) -> bool:
    residues = {name.residue for name in names if name.residue}
    if len(residues) < 2:
        return False
    shapes = [re.sub(r"\d+", "#", residue) for residue in residues if re.search(r"\d", residue)]
    kinds = [re.sub(r"[a-z]+", "a", shape.lower()) for shape in shapes]
    if len(shapes) > len(set(shapes)) or (len(shapes) == len(residues) and len(set(kinds)) == 1):
        return True
    rests = [
        (name.rest, name.phase, name.moment, name.is_mask) for name in names if name.residue and name.rest
    ]
    return len(rests) > len(set(rests))
