"""Which NIfTI files are of one patient and of one examination, by where they lie and what they are called.

Folders that hold everything, and those of sites and makers, are no people. The first other folder that says
more than what is shown (`cine_sax`) is the patient; folders below it named as visits or dates are
examinations. Without such a folder the file's name decides, without its words for what is shown. Files are
held where a volume would stand twice in an examination, and nothing says whether by people or by visits.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from cardiolens.curation.ingest.names import (
    Name,
    is_content,
    is_session,
    is_site,
    may_number_series,
    name_of,
    numbers_shared,
    says_content,
    subject_entity,
)

Keys = tuple[str, str]  # of the patient and of the examination


@dataclass(frozen=True)
class _File:
    """A file, its folders below the one that is looked at, and its parsed name."""

    path: str
    folders: tuple[str, ...]
    name: Name

    @property
    def inner(self) -> "_File":
        """The file as seen from its first folder."""
        return replace(self, folders=self.folders[1:])

    @property
    def content(self) -> tuple[str, ...]:
        """Those of its folders that say what is shown."""
        folders = PurePosixPath(unicodedata.normalize("NFC", self.path)).parent.parts
        return tuple(folder.lower() for folder in folders if is_content(folder))

    @property
    def shows(self) -> tuple[str, ...]:
        """What the file holds by its folders and its name, but for the phase."""
        return (*self.content, self.name.rest.lower(), self.name.moment, str(self.name.is_mask))


def people(paths: Sequence[str]) -> dict[str, Keys | None]:
    """Return the keys of patient and examination of each path below the source; None if they are unclear."""
    keys: dict[str, Keys | None] = {}
    files = []
    for path in paths:
        normal = unicodedata.normalize("NFC", path)
        entity = subject_entity(normal)
        if entity is not None:
            keys[path] = entity
        else:
            files.append(_File(path, PurePosixPath(normal).parent.parts, name_of(path)))
    return keys | _below("", files)


def _below(place: str, files: Sequence[_File], *, wrapped: bool = False) -> dict[str, Keys | None]:
    """Return the keys of files below a folder that is no person."""
    by_folder = _by_first_folder(files)
    loose = by_folder.pop("", [])
    folders = list(by_folder)
    if folders and not loose and (len(folders) == 1 or all(map(is_site, folders))):
        keys: dict[str, Keys | None] = {}
        for folder, inner in by_folder.items():
            in_one = wrapped or (len(folders) == 1 and not (is_content(folder) or is_site(folder)))
            keys |= _below(f"{place}/{folder}", inner, wrapped=in_one)
        return keys
    if _all_say_what_is_shown(by_folder):
        return _within_content(place, files)
    if all(map(is_session, folders)) and _have_people_below(by_folder):
        return _by_date(place, by_folder) | dict.fromkeys(file.path for file in loose)
    inner = [file for of in by_folder.values() for file in of]
    if wrapped and not _has_repeats(inner):  # the series of one person, or people with one series each
        return dict.fromkeys(file.path for file in files)
    keys = _by_names(place, loose)
    unclear = numbers_shared(folders)
    for folder, of in by_folder.items():
        unclear_keys = dict.fromkeys(file.path for file in of)
        keys |= unclear_keys if folder in unclear else _of_person(f"{place}/{folder}", of)
    return keys


def _of_person(patient: str, files: Sequence[_File]) -> dict[str, Keys | None]:
    """Return the keys of the files in a patient's folder."""
    keys: dict[str, Keys | None] = {}
    undated = []
    for file in files:
        if file.folders and is_session(file.folders[0]):
            keys[file.path] = patient, f"{patient}/{file.folders[0]}"
        else:
            undated.append(file)
    word_folders = {file.folders[0] for file in undated if file.folders and not says_content(file.folders[0])}
    if len(word_folders) > 1 and _has_repeats(undated):
        return keys | dict.fromkeys(file.path for file in undated)
    return keys | _in_one_folder(patient, undated)


def _in_one_folder(patient: str, files: Sequence[_File]) -> dict[str, Keys | None]:
    """Return one patient, unless the names of the files name several."""
    of_folder = set(re.findall(r"[^\W_]+", patient.rpartition("/")[2]))
    by_word: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        by_word["_".join(word for word in file.name.residue.split("_") if word not in of_folder)].append(file)
    words = [word for word in by_word if word]
    if _is_a_table_of_people(by_word):
        return {
            file.path: (f"{patient}/{word}",) * 2 if word else None
            for word, of in by_word.items()
            for file in of
        }
    same_form = len({_form(word) for word in words}) == 1 and all(re.search(r"\d", word) for word in words)
    if len(words) > 1 and same_form and not all(map(may_number_series, words)):
        return dict.fromkeys(file.path for file in files)
    return {file.path: (patient, patient) for file in files}


def _by_names(place: str, files: Sequence[_File]) -> dict[str, Keys | None]:
    """Return the keys of files that no folder assigns, by the words of their names that may name a person."""
    by_word: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        by_word[file.name.residue].append(file)
    words = [word for word in by_word if word]
    if len(words) <= 1:
        return {file.path: (place, place) for file in files}
    volumes_of = [{file.shows for file in by_word[word]} for word in words]
    shared = any(len(each) > 1 for each in volumes_of)
    repeated = _share_any(volumes_of) and not all(map(may_number_series, words))
    sure = (shared or repeated) and not _are_running_counts(by_word)
    return {
        file.path: (f"{place}/{word}",) * 2 if sure and word else None
        for word, of in by_word.items()
        for file in of
    }


def _are_running_counts(by_word: Mapping[str, Sequence[_File]]) -> bool:
    """Return whether bare numbers differ from folder to folder: they may count its files, and name nobody."""
    numbers: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for word, files in by_word.items():
        for file in files:
            numbers[file.content].add(word)
    return all(word.isdigit() for word in by_word) and len({*map(frozenset, numbers.values())}) > 1


def _within_content(place: str, files: Sequence[_File]) -> dict[str, Keys | None]:
    """Return the keys where the first folders say what is shown: people are below, or in the names."""
    by_person: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        by_person[next((folder for folder in file.folders if not says_content(folder)), "")].append(file)
    nameless = by_person.pop("", [])
    if not by_person:
        return _by_names(place, nameless)
    keys: dict[str, Keys | None] = dict.fromkeys(file.path for file in nameless)
    for person, of in by_person.items():
        keys |= dict.fromkeys((file.path for file in of), (f"{place}/{person}", f"{place}/{person}"))
    return keys


def _by_date(place: str, by_folder: Mapping[str, Sequence[_File]]) -> dict[str, Keys | None]:
    """Return the keys where the first folders are dates or visits and the next ones are people."""
    return {
        file.path: (f"{place}/{file.folders[0]}", f"{place}/{file.folders[0]}/{date}")
        for date, files in by_folder.items()
        for file in files
    }


def _all_say_what_is_shown(by_folder: Mapping[str, Sequence[_File]]) -> bool:
    """Return whether all folders are words for what is shown, and no name in them contradicts that."""
    return all(
        is_content(folder) and not any(file.name.contradicts(folder) for file in files)
        for folder, files in by_folder.items()
    )


def _have_people_below(by_folder: Mapping[str, Sequence[_File]]) -> bool:
    first = [file.folders[:1] for files in by_folder.values() for file in files]
    return all(folders and not is_content(folders[0]) and not is_session(folders[0]) for folders in first)


def _is_a_table_of_people(by_word: Mapping[str, Sequence[_File]]) -> bool:
    """Return whether words share volumes and have several each, as people have and series have not."""
    volumes_of = [{file.shows for file in files} for word, files in by_word.items() if word]
    several = sum(len(each) > 1 for each in volumes_of)
    return several > 1 and _share_any(volumes_of)


def _share_any(volumes_of: Sequence[set[tuple[str, ...]]]) -> bool:
    """Return whether two of the words have a volume in common."""
    return any(first & second for n, first in enumerate(volumes_of) for second in volumes_of[:n])


def _has_repeats(files: Iterable[_File]) -> bool:
    """Return whether a volume stands twice; phases of one volume are no repeats."""
    volumes_of = [(file.shows, file.name.residue, file.name.phase) for file in files]
    return len(volumes_of) > len(set(volumes_of))


def _by_first_folder(files: Sequence[_File]) -> dict[str, list[_File]]:
    keys: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        keys[file.folders[0] if file.folders else ""].append(file.inner)
    return keys


def _form(word: str) -> str:
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "#", word))
