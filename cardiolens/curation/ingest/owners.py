"""What the path of a NIfTI file says: patient, view, sequence and phase; no name is ever written.

A patient ID in a sidecar decides, or a person's `subject`; else the first folder that does not hold every
file is the patient. Names of files never divide a folder: those that may be of several people are held.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from cardiolens.curation.ingest.frame_records import Declared
from cardiolens.curation.ingest.words import are_vocabulary, words_of

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
_PHASE = re.compile(r"(?:frame|phase|fr|cardphase|timeframe|time|tp)(\d*)")
_PART = re.compile(r"(?:frame|phase|fr|cardphase|timeframe|time|tp|slice|slc|sl|z|run|echo)(\d*)|[234]d")
_VISIT = re.compile(
    r"(ses(sion)?|visit|v|timepoint|exam(ination)?|follow[-_ ]?up)[-_ ]?\w{0,3}|baseline", re.I
)
_DATE = re.compile(r"(19|20)\d\d([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(\d{6})?")
_LONG_NUMBER = re.compile(r"\d{5,}(?!\d)")
_LONGEST_TERM = 8  # words, as in "late gadolinium enhancement of the short axis"


@dataclass(frozen=True, slots=True)
class FileRole:
    """What one NIfTI file is, by its path or by a layout."""

    patient: str
    study: str
    series: str = ""  # files of one phase that share it are one volume
    words: str = ""  # that may name view and sequence
    is_mask: bool = False
    phase: int | None = None
    moment: str = ""  # ED, ES or empty
    unclear: str = ""  # why its patient is not known
    # by a layout:
    volume: str = ""  # of an image, such as cine_sax
    mask_of: tuple[str, ...] = ()  # volumes
    declared: Declared | None = None  # of an image


def natural(path: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that orders numbers by value: run-2 before run-10."""
    parts = re.split(r"(\d+)", path)
    return tuple((0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in parts)


def stem(path: str) -> str:
    """Return a file's name without folder and suffix."""
    return unicodedata.normalize("NFC", _SUFFIX.sub("", PurePosixPath(path).name))


def roles_by_path(
    paths: Sequence[str], ids: Mapping[str, tuple[str, str]] | None = None, subject: str | None = None
) -> dict[str, FileRole]:
    """Return the role of each image by its path below the source.

    `ids`: patient ID and study UID that a sidecar states; `subject`: a person's regular expression of a
    patient's name in paths. If it has a group, this is the patient, and the whole match the examination.
    """
    owners = _by_folder(paths) if subject is None else _by_expression(paths, subject)
    owners = _by_id(owners, ids or {})
    return {
        path: replace(role_by_name(path), patient=owner.patient, study=owner.study, unclear=owner.unclear)
        for path, owner in owners.items()
    }


def role_by_name(path: str) -> FileRole:
    """Return what a file's own name says of it: mask or image, phase, moment, words."""
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
        elif (match := _PHASE.fullmatch(lower)) and (match[1] or following.isdecimal()):
            phase, skip = int(match[1] or following), not match[1]
        else:
            base.append(token)
    folder = PurePosixPath(path).parent
    words = [*tokens, *[folder.name] * _names_view(folder.name), *["cine"] * bool(moment)]
    return FileRole("", "", f"{folder}/{'_'.join(base)}", " ".join(words), is_mask, phase, moment)


def _names_view(folder: str) -> bool:
    """Return whether a folder's name has a word of a view or sequence that is no initials."""
    view_words, _ = _split(folder)
    meaning = words_of(" ".join(word for word in view_words if len(word) > 2 or re.search(r"\d", word)))
    return bool(meaning.sequences or meaning.views)


def _by_expression(paths: Sequence[str], subject: str) -> dict[str, FileRole]:
    owners = {}
    for path in paths:
        owners[path] = FileRole("", "", unclear=NO_SUBJECT)
        match = re.search(subject, path)
        if match is not None and match[match.re.groups and 1] is not None:
            owners[path] = FileRole(match[match.re.groups and 1], match[0])
    return owners


def _by_id(owners: Mapping[str, FileRole], ids: Mapping[str, tuple[str, str]]) -> dict[str, FileRole]:
    """Let patient IDs decide; the one ID of a patient's files is that of its files without one."""
    ids_of: dict[str, set[str]] = defaultdict(set)
    for path, (patient, _) in ids.items():
        if patient and not owners[path].unclear:
            ids_of[owners[path].patient].add(patient)
    decided = {}
    for path, owner in owners.items():
        stated, study = ids.get(path, ("", ""))
        ids_there = set() if owner.unclear else ids_of[owner.patient]
        if stated or len(ids_there) == 1:
            patient = f"ID {stated or next(iter(ids_there))}"
            decided[path] = FileRole(patient, study or f"{patient}/{owner.study}")
        else:
            decided[path] = replace(owner, unclear=IDS_DIFFER) if ids_there else owner
    return decided


def _by_folder(paths: Sequence[str]) -> dict[str, FileRole]:
    """Let the first folder that differs decide; hold what its own name or the names in it contradict."""
    folders = {path: PurePosixPath(unicodedata.normalize("NFC", path)).parent.parts for path in paths}
    levels = [len(set(level)) for level in zip(*folders.values(), strict=False)]
    shared = next((at for at, names in enumerate(levels) if names > 1), len(levels))
    tops: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, parts in folders.items():
        tops[parts[: shared + 1]].append(path)
    first = {top: top[shared] for top in tops if len(top) > shared}
    folded = {_folded(name) for name in first.values()}
    numbers = Counter(match[0] for name in first.values() if (match := _LONG_NUMBER.match(name)))
    owners: dict[str, FileRole] = {}
    for top, members in tops.items():
        name, key, why = first.get(top, ""), "/".join(top), ""
        number = _LONG_NUMBER.match(name)
        inner = [(*folders[path][len(top) :], stem(path)) for path in members]
        inside = {_folded(part) for *folder, last in inner for part in (*folder, _left_over(last))}
        if name and (not _split(name)[1] or _VISIT.fullmatch(name) or _DATE.fullmatch(name)):
            why = "its folder names a view, a visit or a date, and no patient"
        elif number and 1 < numbers[number[0]] < len(first):
            why = "its folder begins with the same number as another"
        elif inside & folded - {_folded(name)}:
            why = "its name is that of another patient's folder"
        elif _may_be_several(["/".join(each) for each in inner]):
            why = "names of files in its folder may be those of several patients"
        owners |= dict.fromkeys(members, FileRole(key, key, unclear=why))
    return owners


def _may_be_several(names: Sequence[str]) -> bool:
    """Return whether paths below a patient's folder may be of several people or visits.

    They are of one if the same words are left beside views, sequences, phases and slices, and no view is
    spelled in two ways. Of two sequences in one name, the words may be initials.
    """
    rests, spellings = set(), defaultdict(set)
    for name in names:
        view_words, rest = _split(name)
        meaning = words_of(" ".join(view_words))
        spellings[meaning].add(view_words)
        rests.add((*view_words, *rest) if len(meaning.sequences) > 1 else rest)
    return len(rests) > 1 or max(map(len, spellings.values())) > 1


def _split(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a name that are of views or sequences, and those that name no part either."""
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


def _left_over(name: str) -> str:
    return " ".join(_split(name)[1])


def _folded(text: str) -> str:
    return " ".join(_tokens(text)).casefold()


def _tokens(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)
