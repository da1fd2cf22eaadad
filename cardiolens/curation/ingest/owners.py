"""Decide whose each NIfTI file is: by a stated ID, else by its folders; nobody's where names contradict them.

A first-level folder is a patient. Names never divide a folder; where they may be those of several people, the
files are held until a person states `subject`.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from cardiolens.curation.ingest.names import is_mask_word, moment_of, stem
from cardiolens.curation.ingest.words import are_vocabulary, words_of

NAMES_DIFFER = "names of files in its folder may be those of several patients"
SAME_VIEW = "its folder holds a view again under another name, of another patient or a repeat"
FOLDERS_NEST = "folders lie within folders, and nothing tells which are patients"
NUMBER_SHARED = "its folder begins with the same number as another"
NAMED_AFTER_OTHER = "its name is that of another patient's folder"
VIEW_BESIDE_OTHERS = "its folder names a view, others beside it do not"
IDS_DIFFER = "files of its folder have several patient IDs, and it has none"
NO_SESSION = "other files of its patient name several examinations, and it names none"
NO_SUBJECT = "subject= matches nothing in its path"

_ENTITY = re.compile(r"(?<=_)(?!ses-)([a-z]+)-([^_]*)(?:_|$)")  # of BIDS, below subject and session
_SESSION = re.compile(
    r"(session|visit|v|timepoint|exam(ination)?|follow[-_ ]?up)[-_ ]?\d{0,3}|baseline", re.IGNORECASE
)
_SESSION_IN_NAME = re.compile(r"(?:^|(?<=_))(ses-[^_]+)(?:_|$)")
_SITE = re.compile(
    r"(site|cent(er|re)|hospital|clinic)[-_ ]?\w{0,3}|siemens|philips|ge|canon|train(ing)?|test(ing)?"
    r"|val(idation)?",
    re.IGNORECASE,
)
_DATE = re.compile(r"(19|20)\d\d([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(\d{6})?")
_PART = re.compile(r"(frame|phase|fr|cardphase|timeframe|time|tp|slice|slc|sl|z|run|echo)(\d*)|[234](d)")
_DATATYPES = ("anat", "func", "perf", "dwi", "fmap")  # folders of BIDS
_LONGEST_TERM = 3  # words, as in "late gadolinium enhancement"
_LONG_NUMBER = re.compile(r"\d{5,}(?!\d)")

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
    """A path taken apart: folders that may be a patient's, what varies by view, and the words left over."""

    path: str
    wrapper: tuple[str, ...]  # folders that hold every file, without those that name views
    places: tuple[str, ...]  # folders that name neither a view nor an examination
    session: str
    kind: Kind | None  # None: it tells no view and no sequence, or several sequences
    before: str  # words in front of those that tell the view
    rest: str  # all words that tell neither view nor part
    text: str  # all words but parts
    silent: bool  # its own name tells no view

    @property
    def key(self) -> str:
        return "/".join((*self.wrapper, *self.places))


@dataclass(frozen=True, slots=True)
class _Level:
    """How the folders of an export begin."""

    shared: int  # leading folders that hold every image
    views: bool  # the first folders that differ name views
    sites: bool  # they name sites, or parts of a data set
    sessions: bool  # they are visits or dates, and hold patients


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
    images = {path: _folders(path) for path in paths if path not in masks}
    level = _level(list(images.values()) or [_folders(path) for path in paths])
    files = [_file(path, level) for path in paths]
    owner_of = _by_place(files, images, level) if subject is None else _by_expression(paths, subject)
    return _by_session(files, _by_id(owner_of, ids or {}))


def tells_view(folder: str) -> bool:
    """Return whether a folder's name has a word of a view or sequence that is no initials."""
    tokens = _words(folder)
    view_words, _ = _view_and_part_words(tokens)
    long = [tokens[at] for at in view_words if len(tokens[at]) > 2 or re.search(r"\d", tokens[at])]
    meaning = words_of(" ".join(long))
    return bool(meaning.sequences or meaning.views)


def _by_expression(paths: Sequence[str], subject: str) -> dict[str, Owner]:
    matches = {path: re.search(subject, path) for path in paths}
    return {
        path: Owner("", "", NO_SUBJECT) if match is None else Owner(match[0], match[0])
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


def _by_session(files: Sequence[_File], owner_of: Mapping[str, Owner]) -> dict[str, Owner]:
    """Give each examination of a patient a study of its own."""
    sessions: dict[str, set[str]] = defaultdict(set)
    for file in files:
        sessions[owner_of[file.path].patient].add(file.session)
    decided = {}
    for file in files:
        owner = owner_of[file.path]
        if not owner.unclear and len(sessions[owner.patient] - {""}) > 1:
            study = f"{owner.study}/{file.session}"
            owner = replace(owner, study=study, unclear="" if file.session else NO_SESSION)
        decided[file.path] = owner
    return decided


def _by_place(files: Sequence[_File], images: Collection[str], level: _Level) -> dict[str, Owner]:
    """Let folders decide, and hold what the names in them contradict."""
    named = _with_names_as_kinds([file for file in files if file.path in images])
    units = _grouped(named, lambda file: file.places)
    depth = 2 if level.sites else 1
    tops = _grouped(units, lambda places: places[:depth])
    doubts = _doubts(tops, units, level)
    n_units = Counter(word for members in units.values() for word in {file.before for file in members})
    top_of = {_folded(top[-1]): top for top in tops if top}
    owner_of = {file.path: Owner(file.key, file.key) for file in files}
    for places, members in units.items():
        is_alone = len(units) == 1 or (level.sites and len(places) == 1)
        elsewhere = {word for word in n_units if n_units[word] > 1 and not level.sites}
        unclear = _unclear(members, elsewhere, alone=is_alone)
        for file in members:
            doubt = doubts.get(places, "") or unclear.get(file.path, "")
            if len(tops) > 1 and not level.views and _only_view(places[:1]) and file.silent:
                doubt = VIEW_BESIDE_OTHERS
            if top_of.get(_folded(file.before), places[:depth]) != places[:depth]:
                doubt = NAMED_AFTER_OTHER
            owner_of[file.path] = Owner(file.key, file.key, doubt)
    return owner_of


def _doubts(
    tops: Mapping[tuple[str, ...], Sequence[tuple[str, ...]]],
    units: Mapping[tuple[str, ...], Sequence[_File]],
    level: _Level,
) -> dict[tuple[str, ...], str]:
    """Return the folders of which nothing tells whether they are patients."""
    doubts: dict[tuple[str, ...], str] = {}
    for members in tops.values():
        if len(members) > 1:
            doubts |= dict.fromkeys(members, FOLDERS_NEST)
    first = [places[-1] for places in tops if places]
    numbers = Counter(
        match[0] for name in first if (match := _LONG_NUMBER.match(name)) and not _is_date(name)
    )
    for places in units:
        match = _LONG_NUMBER.match(places[-1]) if places else None
        if match and 1 < numbers[match[0]] < len(first):
            doubts[places] = NUMBER_SHARED
    subs = Counter(places[-1] for places in units if places and places[-1].startswith("sub-"))
    doubts |= {places: FOLDERS_NEST for places in units if len(places) > 1 and subs[places[-1]] > 1}
    is_wrapped = any(file.wrapper for members in units.values() for file in members)
    if is_wrapped and len(first) > 1 and all(map(_is_session, first)):
        doubts |= dict.fromkeys(units, FOLDERS_NEST)
    return doubts


def _unclear(files: Sequence[_File], elsewhere: Collection[str], *, alone: bool) -> dict[str, str]:
    """Return which files of a folder may be of several people, and why.

    `elsewhere`: words in front of views in several folders; `alone`: no other folder tells patients apart.
    """
    nameless = [file for file in files if not file.kind]
    if nameless and len(nameless) < len(files) and (alone or _collide(nameless)):
        named = [file for file in files if file.kind]
        return dict.fromkeys((file.path for file in nameless), NAMES_DIFFER) | _unclear(
            named, elsewhere, alone=alone
        )
    why = ""
    if len({file.text for file in files}) > 1:
        lettered = {file.before for file in files if re.search(r"[^\W\d_]", file.before)}
        alike = len({file.rest for file in files}) == 1 and not nameless
        several = not alike if alone else len(lettered.difference(elsewhere)) > 1
        why = SAME_VIEW if _collide(files) else NAMES_DIFFER if several else ""
    return dict.fromkeys((file.path for file in files), why) if why else {}


def _collide(files: Iterable[_File]) -> bool:
    """Return whether two files tell the same view and yet have other words."""
    texts = _grouped(files, lambda file: file.kind)
    return any(len({file.text for file in each}) > 1 for each in texts.values())


def _with_names_as_kinds(files: Sequence[_File]) -> list[_File]:
    """Take names in unknown words without numbers for views where several folders have them."""
    places: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for file in files:
        places[file.text].add(file.places)
    return [
        replace(file, kind=("name", file.text))
        if file.kind is None and len(places[file.text]) > 1 and not re.search(r"\d", file.text)
        else file
        for file in files
    ]


def _level(folders: Sequence[Sequence[str]]) -> _Level:
    shared = 0
    while len({tuple(each[: shared + 1]) for each in folders}) == 1 and len(folders[0]) > shared:
        shared += 1
    first = {each[shared] if len(each) > shared else "" for each in folders}
    deeper = [[name for name in each[shared + 1 :] if not tells_view(name)] for each in folders]
    return _Level(
        shared,
        views=all(_only_view((name,)) for name in first),
        sites=all(_SITE.fullmatch(name) for name in first),
        sessions=all(map(_is_session, first)) and all(deeper),
    )


def _file(path: str, level: _Level) -> _File:
    folders = _folders(path)
    wrapper, inner = folders[: level.shared], folders[level.shared :]
    described = [name for name in wrapper if tells_view(name)]
    places: list[str] = []
    sessions: list[str] = []
    below_views = False
    for name in inner:
        if name.startswith("ses-") or (_is_session(name) and (places or level.sessions)):
            sessions.append(name)
        elif tells_view(name) if places or below_views else (level.views and _only_view((name,))):
            described.append(name)
            below_views = True
        elif name.lower() not in _DATATYPES and not any(place.startswith("sub-") for place in places):
            places.append(name)
    name = unicodedata.normalize("NFC", stem(path))
    sessions += _SESSION_IN_NAME.findall(name)
    name = _SESSION_IN_NAME.sub("", name)
    entities = _ENTITY.findall(name) if name.startswith("sub-") else []
    name = _ENTITY.sub("", name) if entities else name
    start, tokens = len(_words(" ".join(described))), _words(" ".join((*described, name)))
    view_words, parts = _view_and_part_words(tokens)
    view_words -= {start} if name.startswith("sub-") else set()  # "sub" is short for subtracted, too
    of_view = {*view_words, *parts}
    dates = [at for at, token in enumerate(tokens) if _is_date(token)] if places else []
    sessions += [] if sessions else [tokens[at][:8] for at in dates]
    first_view = min((at for at in of_view if at >= start), default=len(tokens))
    return _File(
        path,
        tuple(name for name in wrapper if not _only_view((name,))),
        tuple(places),
        "/".join(dict.fromkeys(sessions)),
        _kind([tokens[at] for at in sorted(view_words)], [tokens[at] for at in sorted(parts)], entities),
        " ".join(tokens[at] for at in range(start, first_view) if at not in dates),
        " ".join(token for at, token in enumerate(tokens) if at not in {*of_view, *dates}),
        " ".join(token for at, token in enumerate(tokens) if at not in {*parts, *dates}),
        silent=not any(at >= start for at in view_words) and not (below_views and places),
    )


def _view_and_part_words(tokens: Sequence[str]) -> tuple[set[int], set[int]]:
    """Return which words tell a view, sequence or mask, and which a part such as a phase or slice."""
    view_words: set[int] = set()
    parts: set[int] = set()
    for at, token in enumerate(tokens):
        lower = token.lower()
        if moment_of(lower):
            parts.add(at)
        elif match := _PART.fullmatch(lower):
            is_followed = at + 1 < len(tokens) and tokens[at + 1].isdigit()
            parts |= {at} if match[2] or match[3] else {at, at + 1} if is_followed else set()
        for width in range(1, _LONGEST_TERM + 1):
            if at + width <= len(tokens) and are_vocabulary(" ".join(tokens[at : at + width])):
                view_words |= set(range(at, at + width))
        if is_mask_word(lower):
            view_words.add(at)
    return view_words - parts, parts


def _kind(
    view_words: Sequence[str], parts: Sequence[str], entities: Sequence[tuple[str, str]]
) -> Kind | None:
    words = words_of(" ".join((*view_words, *(value for _, value in entities))))
    if not (words.kind or words.sequences or words.views) or len(words.sequences) > 1:
        return None
    return (words, *parts, *entities)


def _only_view(folders: Sequence[str]) -> bool:
    """Return whether a folder's name has only words of views or sequences."""
    return all(
        tells_view(folder) and len(_view_and_part_words(_words(folder))[0]) == len(_words(folder))
        for folder in folders
    )


def _folders(path: str) -> tuple[str, ...]:
    return PurePosixPath(unicodedata.normalize("NFC", path)).parent.parts


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


def _folded(text: str) -> str:
    return " ".join(_words(text)).casefold()


def _is_session(folder: str) -> bool:
    return _SESSION.fullmatch(folder) is not None or _is_date(folder)


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None


def _grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    groups: dict[_Key, list[_Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
