"""What each file of an export is by a layout: roles of images and masks, facts of subjects."""

import codecs
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import decode, read_bytes
from cardiolens.base.untrusted.csv_file import parse_rows
from cardiolens.curation.ingest.conventions import (
    Convention,
    FactName,
    FileRule,
    InfoRule,
    convention,
    conventions,
    legal_volumes,
)
from cardiolens.curation.ingest.frame_records import Declared, Image, Person
from cardiolens.curation.ingest.owners import FileRole
from cardiolens.curation.ingest.reasons import Flag

_IMAGES = (".nii", ".nii.gz")
_FEWEST_SHARE = 0.5  # of the NIfTI files below a source; a layout that explains fewer is not proposed
_MOST_NAMED = 3  # files that a message names
NO_LAYOUT = "none"
_MOST_BYTES = 16 << 20
_PAIR = re.compile(r"^[^\S\n]*([^:=\n]{1,80}?)[^\S\n]*[:=][^\S\n]*(.{0,200}?)[^\S\n]*$", re.MULTILINE)
_DIGITS = re.compile(r"\d{1,18}")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_MISSING = frozenset({"", "nan", "na", "n/a", "none", "unknown", "-", "?"})
_SEXES = {"f": "F", "female": "F", "w": "F", "m": "M", "male": "M"}
_RANGES: Mapping[FactName, tuple[float, float]] = {
    "ed": (-0.5, 10_000),
    "es": (-0.5, 10_000),
    "phases": (0, 10_000),
    "age": (0, 130),
    "height_cm": (30, 260),
    "weight_kg": (1, 400),
    "field_tesla": (0, 20),
    "slice_mm": (0.5, 50),
    "lv_edv_ml": (1, 1000),
    "lv_esv_ml": (0.5, 1000),
}

Values = dict[FactName, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the information files say of one subject; phases are counted from 1."""

    ed: int | None = None
    es: int | None = None
    slice_mm: float | None = None  # distance of slices
    phases: float | None = None  # of a cine
    person: Person = field(default_factory=Person)
    flags: tuple[Flag, ...] = ()  # for facts with values that cannot be used
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """All files of an export by a layout."""

    layout: Convention
    roles: Mapping[str, FileRole]  # of NIfTI files, or of DICOM files
    facts: Mapping[str, Facts]  # by subject

    @property
    def information(self) -> set[str]:
        """Files with facts about subjects."""
        return {path for facts in self.facts.values() for path in facts.files}

    def of_subject(self, path: str, images: Sequence[Image]) -> list[Image]:
        """Return the frames of a DICOM file as those of its subject."""
        subject = self.roles[path].patient
        return [
            replace(
                image,
                identity=replace(image.identity, patient=subject, study=subject),
                person=self.facts[subject].person.completed_by(image.person),
                of_set=self.layout.name,
            )
            for image in images
        ]


def assigned(
    word: str | None, files: Mapping[str, Path], other_files: Mapping[str, Path]
) -> Assignment | None:
    """Return the role of each NIfTI file, or the subject of each other file, and the facts of subjects.

    By the layout that is named, or by the one that fits; None without one. InputError for a repackaged
    version, two files that would be the same, and if no file fits.
    """
    if word == NO_LAYOUT:
        return None
    layout = propose_layout(list(files)) if word is None else convention(word)
    if layout is None:
        return None
    _check_refused(layout, [*files, *other_files])
    of_kind, kind = (files, "NIfTI files") if layout.dicom is None else (other_files, "files")
    roles = _roles(layout, of_kind)
    if all(role.is_mask for role in roles.values()):
        expected = layout.dicom or next((rule.files for rule in layout.files if rule.image), "an image")
        raise InputError(
            f"layout={layout.name}: none of {len(files or other_files)} {kind} is an image of it; "
            f"expected files such as {expected}; correct source, or name another layout, or none: layout=none"
        )
    path_of: dict[FileRole, str] = {}
    for path, role in sorted(roles.items()) if layout.dicom is None else ():
        if (twin := path_of.setdefault(role, path)) != path:
            raise InputError(
                f"layout={layout.name}: {twin} and {path} are the same file of one subject by this "
                "layout; give a source with one copy of the set"
            )
    subjects = {path: role.patient for path, role in roles.items()}
    return Assignment(layout, roles, facts_of_subjects(layout, subjects, other_files))


def propose_layout(paths: Sequence[str]) -> Convention | None:
    """Return and print the layout that explains most files of an export, and at least half of them.

    InputError if the files are a repackaged version of a known set.
    """
    images = [path for path in paths if path.lower().endswith(_IMAGES)]
    fits: list[tuple[int, Convention, str]] = []
    for layout in conventions().values():
        if not images or not layout.files or not layout.proposed:
            continue
        _check_refused(layout, images, most=len(images) // 2)
        rules = [rule for path in images if (rule := _rule(layout, path)[0]) is not None]
        needed = {rule.files for rule in layout.files if rule.needed}
        example = next((rule.files for rule in rules if rule.image), "")
        if example and needed <= {rule.files for rule in rules}:
            fits.append((len(rules), layout, example))
    fits.sort(key=lambda fit: fit[0], reverse=True)
    if not fits or fits[0][0] < _FEWEST_SHARE * len(images) or (fits[1:] and fits[1][0] == fits[0][0]):
        return None
    count, chosen, example = fits[0]
    reason = f"{count} of {len(images)} files have its names, such as {example}"
    say(f"layout={chosen.name} is taken: {reason}; layout=none imports without one")
    return chosen


def _rule(convention: Convention, path: str) -> tuple[FileRule | None, dict[str, str]]:
    """Return the first rule that a path fits, and the parts of the path; no rule if it fits none."""
    for rule in convention.files:
        match = convention.pattern(rule.files).match(path)
        if match is not None and "subject" in match.groupdict():
            return rule, match.groupdict(default="")
    return None, {}


def _roles(convention: Convention, paths: Iterable[str]) -> dict[str, FileRole]:
    """Return the role of each file that a rule fits; of a DICOM file, only its subject."""
    if convention.dicom is not None:
        matches = {path: convention.pattern(convention.dicom).match(path) for path in paths}
        return {path: FileRole(each["subject"], each["subject"]) for path, each in matches.items() if each}
    roles = {}
    for path in paths:
        rule, parts = _rule(convention, path)
        if rule is None:
            continue
        subject, session, phase = (parts.get(name, "") for name in ("subject", "session", "phase"))
        study, volume = f"{subject}/{session}" if session else subject, rule.image or rule.mask_of[0]
        sequence, view = legal_volumes()[volume]
        roles[path] = FileRole(
            patient=subject,
            study=study,
            series=f"{study}/{volume}/{volume}",
            words=f"{sequence} {view}",
            is_mask=bool(rule.mask_of),
            phase=int(phase) if phase else None,
            moment=parts.get("moment", "").upper() or rule.moment or "",
            volume=rule.image or "",
            mask_of=rule.mask_of,
            declared=Declared(sequence, view, convention.display) if rule.image else None,
        )
    return roles


def _check_refused(convention: Convention, paths: Sequence[str], most: int = 0) -> None:
    """Check that at most so many files are of a repackaged version."""
    for rule in convention.refused:
        refused = sorted(filter(convention.pattern(rule.files).match, paths))
        if len(refused) > most:
            raise InputError(
                f"layout={convention.name}: {len(refused)} files such as {', '.join(refused[:_MOST_NAMED])} "
                f"are of a repackaged version: {rule.reason}; get the set from "
                f"{convention.place or 'its makers'}, or import it as any NIfTI with layout=none"
            )


# Facts of subjects: ED and ES, group, body, scanner


def facts_of_subjects(
    convention: Convention, subject_of: Mapping[str, str], files: Mapping[str, Path]
) -> dict[str, Facts]:
    """Read the information files of a set, given the subject of each image and mask by its path.

    InputError if a file cannot be read or lacks a column.
    """
    values: dict[str, Values] = {}
    for subject in subject_of.values():
        groups = [name for start, name in convention.group_by_subject.items() if subject.startswith(start)]
        group: Values = {"group": groups[0]} if groups else {}
        values[subject] = {**convention.facts, **group}
    by_number = {int(subject): subject for subject in values if _DIGITS.fullmatch(subject)}
    counts_from: dict[FactName, int] = {}
    sources: dict[str, list[str]] = {subject: [] for subject in values}
    for rule in convention.information:
        counts_from |= {name: fact.counts_from for name, fact in rule.facts.items()}
        columns = {name: _plain(fact.column) for name, fact in rule.facts.items()}
        for path in sorted(files):
            match = convention.pattern(rule.files).match(path)
            for name, cells in () if match is None else _entries(rule, match, path, files[path], subject_of):
                is_number = _DIGITS.fullmatch(name) and name not in values  # a table may omit zeros
                subject = by_number.get(int(name), name) if is_number else name
                if subject in values:
                    values[subject] |= {fact: cells[at] for fact, at in columns.items() if at in cells}
                    sources[subject].append(path)
    return {
        subject: replace(_facts(stated, counts_from), files=tuple(sources[subject]))
        for subject, stated in values.items()
    }


def _entries(
    rule: InfoRule, match: re.Match[str], path: str, place: Path, subject_of: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the subjects of an information file with what it says of each, by plain key or column."""
    text = _content(path, place)
    if rule.kind == "pairs":
        pairs: dict[str, str] = {}
        for pair in _PAIR.finditer(text):
            if pairs.setdefault(_plain(pair[1]), pair[2]) != pair[2]:
                raise InputError(f"{path}: {pair[1]!r} stands twice with two values; correct the file")
        yield match.groupdict().get("subject") or _only_subject(path, subject_of), pairs
        return
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    try:
        rows = parse_rows(text, delimiter)
    except ValueError as error:
        raise InputError(f"{path}: {error}; expected a table with the column {rule.subject}") from None
    key, names = _plain(rule.subject or ""), [*rows[0]] if rows else []
    if key not in map(_plain, names):
        raise InputError(
            f"{path}: has no column {rule.subject!r}, only {', '.join(sorted(names)[:12])}; "
            "get the table of the set as it was published"
        )
    for row in rows:
        cells = {_plain(name): (cell or "").strip() for name, cell in row.items()}
        yield cells[key], cells


def _only_subject(path: str, subject_of: Mapping[str, str]) -> str:
    """Return the only subject with files in a file's folder, or below it; else nothing."""
    folder = PurePosixPath(path).parent
    subjects = {
        subject for image, subject in subject_of.items() if PurePosixPath(image).is_relative_to(folder)
    }
    return subjects.pop() if len(subjects) == 1 else ""


def _content(path: str, place: Path) -> str:
    try:
        stored = read_bytes(place, _MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); copy it again") from None
    try:
        text = decode(stored)
    except UnicodeError:
        utf16 = stored.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as spreadsheets save text
        text = stored.decode("utf-16" if utf16 else "latin-1", "replace")  # others are Western European
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _plain(name: str) -> str:
    """Return a key without case, daggers and repeated blanks: `Sex†` is `sex`."""
    return " ".join(re.sub(r"[^\w()+&/.-]+", " ", name).lower().split())


def _facts(values: Values, counts_from: Mapping[FactName, int]) -> Facts:
    text = {name: value.strip() for name, value in values.items() if value.strip().lower() not in _MISSING}
    read = {name: _in_range(name, text[name]) for name in _RANGES if name in text}
    number = {name: value for name, value in read.items() if value is not None}
    phase = {
        name: round(number[name]) + 1 - counts_from.get(name, 1)
        for name in ("ed", "es")
        if name in number and number[name] == int(number[name])
    }
    phase = {name: at for name, at in phase.items() if at >= 1}
    is_one = len(phase) == 2 and phase["ed"] == phase["es"]
    is_odd = is_one or {name for name in ("ed", "es") if name in read} != phase.keys()
    person = Person(
        sex=_SEXES.get(text.get("sex", "").lower(), ""),
        age=f"{int(number['age']):03d}Y" if "age" in number else "",
        manufacturer=text.get("vendor", ""),
        tesla=number.get("field_tesla"),
        height_cm=number.get("height_cm"),
        weight_kg=number.get("weight_kg"),
        site=text.get("site", ""),
        group=text.get("group", ""),
        lv_edv_ml=number.get("lv_edv_ml"),
        lv_esv_ml=number.get("lv_esv_ml"),
    )
    ed, es = (None, None) if is_one else (phase.get("ed"), phase.get("es"))
    flags = [Flag.VALUES] * (len(number) < len(read)) + [Flag.TIMES] * is_odd
    return Facts(ed, es, number.get("slice_mm"), number.get("phases"), person, tuple(flags))


def _in_range(name: FactName, value: str) -> float | None:
    match, (low, high) = _NUMBER.search(value), _RANGES[name]
    parsed = float(match[0].replace(",", ".")) if match else math.nan
    return parsed if low < parsed < high else None
