"""Decide whose each NIfTI file is: by a stated ID, by its folders, by its name; else nobody's.

A first-level folder is a patient. Names only divide what folders leave together, and only where they show it.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from cardiolens.curation.ingest.names import is_date, is_mask_word, moment_of, stem
from cardiolens.curation.ingest.words import are_vocabulary, words_of

NAMES_DIFFER = "names of files in its folder may be those of several patients"
SAME_VIEW = "its folder holds the same view again under another name, of another patient or a repeat"
FOLDERS_NEST = "its folders nest, and nothing tells a patient's from a site's or a series'"
NAMED_AFTER_OTHER = "its name is that of another patient's folder"
NOT_IN_LEVEL = "its folder names a view, others beside it do not"
IDS_DIFFER = "other files of its folder have several patient IDs, and it has none"
NO_SESSION = "other files of its patient name several examinations, and it names none"
NO_SUBJECT = "subject= matches nothing in its path"

_ENTITY = re.compile(
    r"(?:^|(?<=_))(acq|run|task|rec|dir|echo|part|desc|space|mod|ce|inv|flip|chunk|res|den|label|split)"
    r"-([^_]*)(?:_|$)"
)  # of BIDS, below subject and session
_SESSION = re.compile(
    r"ses-.+|(?:ses|session|visit|timepoint|exam|examination)[-_ ]?\w{1,3}|baseline|follow[-_ ]?up[-_ ]?\d*",
    re.I,
)
_SESSION_OF_NAME = re.compile(r"(?:^|(?<=_))(ses-[^_]+)(?:_|$)")
_PART = re.compile(r"(frame|phase|fr|cardphase|timeframe|time|tp|slice|slc|sl|z|run|echo)(\d*)")
_DATATYPES = ("anat", "func", "perf", "dwi", "fmap")  # folders of BIDS
_WINDOW = 3  # words of a term, as in "late gadolinium enhancement"

Kind = tuple[object, ...]
_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Owner:
    """Keys of a file's patient and study, or why nothing tells them."""

    patient: str
    study: str
    unclear: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    """A path taken apart: folders that may be a patient's, what varies by view, and the words that are left."""

    path: str
    shared: tuple[str, ...]  # folders that hold every file, without those that name views
    places: tuple[str, ...]
    session: str
    kind: Kind | None  # None: the name tells no view and no sequence, or several sequences
    before: str  # words in front of those that tell the view
    others: str  # all words that tell neither view, part nor session
    text: str  # all words but parts

    @property
    def top(self) -> str:
        return self.places[0] if self.places else ""


def owners(
    paths: Sequence[str],
    *,
    masks: Collection[str] = (),
    ids: Mapping[str, tuple[str, str]] | None = None,
    subject: str | None = None,
) -> dict[str, Owner]:
    """Map each path below the source to its patient and study.

    `ids`: patient ID and study UID that a sidecar states; `subject`: a person's regular expression of a
    patient's name in paths. Files of `masks` are no evidence.
    """
    files = _files(paths, masks)
    found = _stated(files, subject) if subject is not None else _by_place(files, masks)
    return _by_session(files, _by_id(found, ids or {}))


def _stated(files: Sequence[_File], subject: str) -> dict[str, Owner]:
    matches = {file.path: re.search(subject, file.path) for file in files}
    return {
        path: Owner("", "", NO_SUBJECT) if match is None else Owner(match[0], match[0])
        for path, match in matches.items()
    }


def _by_id(found: Mapping[str, Owner], ids: Mapping[str, tuple[str, str]]) -> dict[str, Owner]:
    """Let patient IDs decide; the one ID of a patient's files is that of its files without one."""
    ids_of: dict[str, set[str]] = defaultdict(set)
    for path, (patient, _) in ids.items():
        if patient and not found[path].unclear:
            ids_of[found[path].patient].add(patient)
    decided = {}
    for path, owner in found.items():
        stated, study = ids.get(path, ("", ""))
        known = ids_of[owner.patient] if not owner.unclear else set()
        if stated or len(known) == 1:
            patient = f"ID {stated or next(iter(known))}"
            place = "" if owner.unclear else owner.study
            decided[path] = Owner(patient, study or f"{patient}/{place}")
        else:
            decided[path] = replace(owner, unclear=IDS_DIFFER) if known else owner
    return decided


def _by_session(files: Sequence[_File], found: Mapping[str, Owner]) -> dict[str, Owner]:
    """Give each examination of a patient a study of its own."""
    sessions: dict[str, set[str]] = defaultdict(set)
    for file in files:
        sessions[found[file.path].patient].add(file.session)
    decided = {}
    for file in files:
        owner = found[file.path]
        if not owner.unclear and len(sessions[owner.patient] - {""}) > 1:
            owner = replace(
                owner, study=f"{owner.study}/{file.session}", unclear="" if file.session else NO_SESSION
            )
        decided[file.path] = owner
    return decided


def _by_place(files: Sequence[_File], masks: Collection[str]) -> dict[str, Owner]:
    """Let folders decide, then names; a mask belongs to whom its name says among those."""
    images = [file for file in files if file.path not in masks]
    units = _grouped(images, lambda file: file.places)
    tops = _grouped(units, lambda places: places[:1])
    unclear = _nested(tops, units)
    labels = {top[0]: _folded(top[0]) for top in tops if top}
    found: dict[str, Owner] = {}
    for places, members in units.items():
        split = _split(members, alone=len(units) == 1, elsewhere=_labels_elsewhere(units, places))
        for file in members:
            label = split if isinstance(split, str) else split.get(file.path, "")
            why = unclear.get(places, "")
            if len(tops) > 1 and _content_words(file.top):
                why = NOT_IN_LEVEL
            if _folded(file.before) in {name for top, name in labels.items() if top != file.top}:
                why = NAMED_AFTER_OTHER
            if isinstance(split, str):
                why, label = why or split, ""
            key = _key(file, label)
            found[file.path] = Owner(key, key, why)
    for file in files:
        found.setdefault(file.path, Owner(_key(file, ""), _key(file, "")))
    return found


def _key(file: _File, label: str) -> str:
    return "/".join(filter(None, (*file.shared, *file.places, label)))


def _nested(
    tops: Mapping[tuple[str, ...], Sequence[tuple[str, ...]]],
    units: Mapping[tuple[str, ...], Sequence[_File]],
) -> dict[tuple[str, ...], str]:
    """Return the folders within first-level folders of which nothing tells whether they are patients."""
    unclear = {}
    for top, members in tops.items():
        inner = {places[1:] for places in members}
        others = {places[1:] for places in units if places[:1] != top}
        kinds = {"/".join(places): {file.kind for file in units[places]} for places in members}
        if len(members) > 1 and (inner & others or () in inner or not _are_people(kinds)):
            unclear |= dict.fromkeys(members, FOLDERS_NEST)
    return unclear


def _split(files: Sequence[_File], *, alone: bool, elsewhere: Collection[str]) -> str | dict[str, str]:
    """Return the patient's name of each file of a folder, empty if it has one patient; or why it is unclear.

    `alone`: no other folder has files, so that none tells patients apart.
    """
    if len({file.others for file in files}) == 1 and not _collide(files):
        return {}
    if not alone and not _collide(files):
        return {}
    if alone and any(file.kind is None for file in files) and len(files) > 1 and not _all_before(files):
        return NAMES_DIFFER
    by_before = len({file.before for file in files}) > 1
    groups = _grouped(files, lambda file: file.before if by_before else file.others)
    kinds = {label: {file.kind for file in members} for label, members in groups.items()}
    tells = "" not in groups and not any(map(_collide, groups.values())) and not elsewhere & groups.keys()
    spans = any(len(each - {None}) > 1 for each in kinds.values())
    if tells and (spans or (by_before and alone and _are_people(kinds))):
        return {file.path: label for label, members in groups.items() for file in members}
    return SAME_VIEW if _collide(files) else NAMES_DIFFER


def _all_before(files: Sequence[_File]) -> bool:
    return all(file.before for file in files)


def _labels_elsewhere(units: Mapping[tuple[str, ...], Sequence[_File]], places: tuple[str, ...]) -> set[str]:
    others = [file for key, members in units.items() if key != places for file in members]
    return {file.before for file in others} | {file.others for file in others}


def _collide(files: Sequence[_File]) -> bool:
    """Return whether two files tell the same view and yet have other words."""
    texts: dict[Kind | None, set[str]] = defaultdict(set)
    for file in files:
        texts[file.kind].add(file.text)
    return any(len(each) > 1 for each in texts.values())


def _are_people(kinds: Mapping[str, set[Kind | None]]) -> bool:
    """Return whether one group has several views, or each has a view that another has too: series have neither."""
    known = {label: each - {None} for label, each in kinds.items()}
    if any(len(each) > 1 for each in known.values()):
        return True
    return all(
        any(each & other for name, other in known.items() if name != label) for label, each in known.items()
    )


def _files(paths: Sequence[str], masks: Collection[str]) -> list[_File]:
    folders = {path: _normal(path).split("/")[:-1] for path in paths}
    images = [folders[path] for path in paths if path not in masks] or list(folders.values())
    shared = _shared(images)
    first = {each[shared] if len(each) > shared else "" for each in images}
    only_views = all(map(_content_words, first))  # then these folders are views, not patients
    return [_file(path, folders[path], shared, only_views=only_views) for path in paths]


def _file(path: str, folders: Sequence[str], shared: int, *, only_views: bool) -> _File:
    places: list[str] = []
    described: list[str] = [name for name in folders[:shared] if tells_view(name)]
    sessions: list[str] = []
    for name in folders[shared:]:
        if _SESSION.fullmatch(name) or (places and is_date(name)):
            sessions.append(name)
        elif any(place.startswith("sub-") for place in places) or name in _DATATYPES:
            described += [name] if tells_view(name) else []
        elif tells_view(name) if places else (only_views and _content_words(name)):
            described.append(name)
        else:
            places.append(name)
    name = _normal(stem(path))
    sessions += _SESSION_OF_NAME.findall(name)
    name = _SESSION_OF_NAME.sub("", name)
    entities = _ENTITY.findall(name)
    tokens = re.split(r"[\W_]+", _ENTITY.sub("", name))
    tokens = [token for token in (*re.split(r"[\W_]+", " ".join(described)), *tokens) if token]
    told, parts = _told(tokens)
    of_view = {*told, *parts}
    dated = {at for at, token in enumerate(tokens) if is_date(token)}
    sessions += sorted({tokens[at][:8] for at in dated} if not sessions else ())
    others = [token for at, token in enumerate(tokens) if at not in of_view | dated]
    start = sum(len(re.findall(r"[^\W_]+", each)) for each in described)
    at_view = min((at for at in of_view if at >= start), default=len(tokens))
    before = [tokens[at] for at in range(start, at_view) if at not in dated]
    kind = _kind([tokens[at] for at in sorted(told)], [value for _, value in entities])
    pieces = (*(tokens[at] for at in sorted(parts)), *(f"{key}-{value}" for key, value in entities))
    return _File(
        path,
        tuple(name for name in folders[:shared] if not _content_words(name)),
        tuple(places),
        "/".join(dict.fromkeys(sessions)),
        None if kind is None else (*kind, *pieces),
        " ".join(before),
        " ".join(others),
        " ".join(token for at, token in enumerate(tokens) if at not in {*parts, *dated}),
    )


def _told(tokens: Sequence[str]) -> tuple[set[int], set[int]]:
    """Return which words tell a view, sequence or mask, and which a part such as a phase or slice."""
    told: set[int] = set()
    parts: set[int] = set()
    for at, token in enumerate(tokens):
        lower = token.lower()
        if moment_of(lower):
            parts.add(at)
        elif match := _PART.fullmatch(lower):
            follows = at + 1 < len(tokens) and tokens[at + 1].isdigit()
            if match[2] or follows:
                parts |= {at} if match[2] else {at, at + 1}
        for width in range(_WINDOW, 0, -1):
            if at + width <= len(tokens) and are_vocabulary(" ".join(tokens[at : at + width])):
                told |= set(range(at, at + width))
        if is_mask_word(lower):
            told.add(at)
    return told - parts, parts


def _kind(tokens: Sequence[str], entities: Iterable[str]) -> Kind | None:
    words = words_of(" ".join((*tokens, *entities)))
    if not (words.kind or words.sequences or words.views) or len(words.sequences) > 1:
        return None
    return (words.kind, words.sequences, words.views, words.component, words.state)


def tells_view(folder: str) -> bool:
    """Return whether a folder's name has words of views or sequences that are no initials."""
    tokens = [token for token in re.split(r"[\W_]+", folder) if token]
    told, _ = _told(tokens)
    return any(len(tokens[at]) > 2 or not tokens[at].isalpha() for at in told if not tokens[at].isdigit())


def _content_words(folder: str) -> bool:
    """Return whether a folder's name has only words of views or sequences."""
    tokens = [token for token in re.split(r"[\W_]+", folder) if token]
    return tells_view(folder) and len(_told(tokens)[0]) == len(tokens)


def _shared(folders: Sequence[Sequence[str]]) -> int:
    """Return how many leading folders all files share."""
    shared = 0
    while folders and len({tuple(each[: shared + 1]) for each in folders}) == 1 and len(folders[0]) > shared:
        shared += 1
    return shared


def _folded(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().casefold()


def _normal(path: str) -> str:
    return unicodedata.normalize("NFC", str(PurePosixPath(path)))


def _grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    groups: dict[_Key, list[_Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
