"""What the name of a NIfTI file tells, and whose the file is; the names themselves are never written.

A patient ID in a sidecar decides, or a person's `subject`; else the first folder that does not hold every
file is the patient. Names of files never divide a folder: those that may be of several people are held.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from cardiolens.curation.ingest.words import are_vocabulary, words_of

NAMES_DIFFER = "names of files in its folder may be those of several patients"
NO_PATIENT = "its folder names a view, a visit or a date, and no patient"
NUMBER_SHARED = "its folder begins with the same number as another"
NAMED_AFTER_OTHER = "its name is that of another patient's folder"
IDS_DIFFER = "files of its folder have several patient IDs, and it has none"
NO_SUBJECT = "subject= matches nothing in its path"

_SUFFIX = re.compile(r"\.(nii|nii\.gz|hdr|img|hdr\.gz|img\.gz|json|gz)$", re.IGNORECASE)
_ENTITY = re.compile(r"(?:^|(?<=_))(?:sub|ses|task)-[^_]*_?")  # of BIDS: people, visits
_MASKS = re.compile(
    r"(gt|seg|segs|segm|segmentation|segmentations|mask|masks|label|labels|dseg|probseg|manual|contours?|annot\w*"
    r"|roi|groundtruth|labelmap)\d*"
)
_MOMENTS = {"ed": "ED", "es": "ES", "diastole": "ED", "systole": "ES"}
_MOMENTS |= {"enddiastole": "ED", "endsystole": "ES"}
_PHASE = re.compile(r"(frame|phase|fr|cardphase|timeframe|time|tp)(\d*)")
_PART = re.compile(r"(?:frame|phase|fr|cardphase|timeframe|time|tp|slice|slc|sl|z|run|echo)(\d*)|[234]d")
_VISIT = re.compile(
    r"(ses(sion)?|visit|v|timepoint|exam(ination)?|follow[-_ ]?up)[-_ ]?\w{0,3}|baseline", re.I
)
_DATE = re.compile(r"(19|20)\d\d([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(\d{6})?")
_LONG_NUMBER = re.compile(r"\d{5,}(?!\d)")
_LONGEST_TERM = 8  # words, as in "late gadolinium enhancement of the short axis"


@dataclass(frozen=True, slots=True)
class Name:
    """Parts of a file's name."""

    folder: str
    words: str  # all words but BIDS entities
    base: str  # without phase and moment: files that share a base are phases of one volume
    is_mask: bool
    phase: int | None
    moment: str  # ED, ES or empty


@dataclass(frozen=True, slots=True)
class Owner:
    """Keys of a file's patient and study, or why nothing tells them."""

    patient: str
    study: str
    unclear: str = ""


def natural(path: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that orders numbers by value: run-2 before run-10."""
    parts = re.split(r"(\d+)", path)
    return tuple((0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in parts)


def stem(path: str) -> str:
    """Return a file's name without folder and suffix."""
    return unicodedata.normalize("NFC", _SUFFIX.sub("", PurePosixPath(path).name))


def name_of(path: str) -> Name:
    """Parse the name of a file, given its path below the source."""
    tokens = _tokens(_ENTITY.sub("", stem(path)))
    base: list[str] = []
    phase: int | None = None
    moment, is_mask, skip = "", False, False
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        lower = token.lower()
        if skip:
            skip = False
        elif _MASKS.fullmatch(lower):
            is_mask = True
        elif lower in _MOMENTS:
            moment = _MOMENTS[lower]
        elif (match := _PHASE.fullmatch(lower)) and (match[2] or following.isdigit()):
            phase, skip = int(match[2] or following), not match[2]
        else:
            base.append(token)
    folder = str(PurePosixPath(path).parent)
    return Name(folder, " ".join(tokens), "_".join(base), is_mask, phase, moment)


def tells_view(folder: str) -> bool:
    """Return whether a folder's name has a word of a view or sequence that is no initials."""
    view_words, _ = _split(folder)
    meaning = words_of(" ".join(word for word in view_words if len(word) > 2 or re.search(r"\d", word)))
    return bool(meaning.sequences or meaning.views)


def owners(
    paths: Sequence[str], ids: Mapping[str, tuple[str, str]] | None = None, subject: str | None = None
) -> dict[str, Owner]:
    """Map each path of an image below the source to its patient and study.

    `ids`: patient ID and study UID that a sidecar states; `subject`: a person's regular expression of a
    patient's name in paths. If it has a group, this is the patient, and the whole match the examination.
    """
    return _by_id(_by_folder(paths) if subject is None else _by_expression(paths, subject), ids or {})


def _by_expression(paths: Sequence[str], subject: str) -> dict[str, Owner]:
    matches = {path: re.search(subject, path) for path in paths}
    return {
        path: Owner("", "", NO_SUBJECT) if match is None else Owner(match[match.re.groups and 1], match[0])
        for path, match in matches.items()
    }


def _by_id(owner_of: Mapping[str, Owner], ids: Mapping[str, tuple[str, str]]) -> dict[str, Owner]:
    """Let patient IDs decide; the one ID of a patient's files is that of its files without one."""
    ids_of: dict[str, set[str]] = defaultdict(set)
    for path, (patient, _) in ids.items():
        if patient and not owner_of[path].unclear:
            ids_of[owner_of[path].patient].add(patient)
    decided = {}
    for path, owner in owner_of.items():
        stated, study = ids.get(path, ("", ""))
        ids_there = set() if owner.unclear else ids_of[owner.patient]
        if stated or len(ids_there) == 1:
            patient = f"ID {stated or next(iter(ids_there))}"
            decided[path] = Owner(patient, study or f"{patient}/{owner.study}")
        else:
            decided[path] = replace(owner, unclear=IDS_DIFFER) if ids_there else owner
    return decided


def _by_folder(paths: Sequence[str]) -> dict[str, Owner]:
    """Let the first folder that differs decide, and hold what its own name or the names in it contradict."""
    folders = {path: PurePosixPath(unicodedata.normalize("NFC", path)).parent.parts for path in paths}
    levels = [len(set(level)) for level in zip(*folders.values(), strict=False)]
    shared = next((at for at, names in enumerate(levels) if names > 1), len(levels))
    tops: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, parts in folders.items():
        tops[parts[: shared + 1]].append(path)
    first = {top: top[shared] for top in tops if len(top) > shared}
    numbers = Counter(match[0] for name in first.values() if (match := _LONG_NUMBER.match(name)))
    owner_of: dict[str, Owner] = {}
    for top, members in tops.items():
        name, key = first.get(top, ""), "/".join(top)
        number = _LONG_NUMBER.match(name)
        other_tops = {_folded(folder) for folder in first.values()} - {_folded(name)}
        inner = {path: folders[path][len(top) :] for path in members}
        rests = {_left_over(path) for path in members if _is_named(path)}
        evidence = {path: inner[path] for path in members if inner[path] or _left_over(path) in rests}
        why = NAMES_DIFFER if _may_be_several(evidence or inner, alone=len(tops) == 1) else ""
        if name and (not _split(name)[1] or _VISIT.fullmatch(name) or _DATE.fullmatch(name)):
            why = NO_PATIENT
        elif number and 1 < numbers[number[0]] < len(first):
            why = NUMBER_SHARED
        elif any(
            _folded(word) in other_tops for path in members for word in (*inner[path], _left_over(path))
        ):
            why = NAMED_AFTER_OTHER
        for path in members:
            is_nameless = bool(evidence) and path not in evidence
            owner_of[path] = Owner(key, key, why or (NAMES_DIFFER if is_nameless else ""))
    return owner_of


def _may_be_several(inner: Mapping[str, Sequence[str]], *, alone: bool) -> bool:
    """Return whether what names tell besides views, phases and slices may be several people or visits.

    `inner`: the folders of each path below its patient's. Beside other patients, numbers in names may be
    those of series, unless a view is there twice.
    """
    rests, texts = set(), set()
    for path, folders in inner.items():
        view_words, rest = _split(stem(path))
        meaning = words_of(" ".join(view_words))
        rest = (*view_words, *rest) if len(meaning.sequences) > 1 else rest
        rest_beside = tuple(word for folder in folders for word in _split(folder)[1])
        rests.add((rest_beside, rest if alone else tuple(word for word in rest if not word.isdigit())))
        described = tuple(word for folder in folders for word in _split(folder)[0])
        texts.add(((described, meaning), (view_words, rest)))
    return len(rests) > 1 or len(texts) > len({view for view, _ in texts})


def _split(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a name that tell views or sequences, and those that tell no part either."""
    tokens, at = _tokens(name), 0
    view_words: list[str] = []
    rest: list[str] = []
    while at < len(tokens):
        terms = (tokens[at : at + width] for width in range(_LONGEST_TERM, 0, -1))
        term = next((term for term in terms if are_vocabulary(" ".join(term))), [])
        lower = tokens[at].lower()
        if term:
            view_words += term
        elif part := _PART.fullmatch(lower):
            at += part[1] == "" and at + 1 < len(tokens) and tokens[at + 1].isdigit()
        elif lower not in _MOMENTS and not _MASKS.fullmatch(lower):
            rest.append(tokens[at])
        at += len(term) or 1
    return tuple(word.lower() for word in view_words), tuple(rest)


def _is_named(path: str) -> bool:
    name = name_of(path)
    return bool(_split(stem(path))[0]) or bool(name.moment) or name.phase is not None


def _left_over(path: str) -> str:
    return " ".join(_split(stem(path))[1])


def _folded(text: str) -> str:
    return " ".join(_tokens(text)).casefold()


def _tokens(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)
