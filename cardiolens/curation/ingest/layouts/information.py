"""Facts of subjects from the information files of a set: ED and ES, group, body, scanner."""

import codecs
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import decode, read_bytes
from cardiolens.base.untrusted.csv_file import parse_rows
from cardiolens.curation.ingest.frame_records import Person
from cardiolens.curation.ingest.layouts.convention import Convention, FactName, InfoRule
from cardiolens.curation.ingest.reasons import Flag

_MOST_BYTES = 16 << 20
_PAIR = re.compile(r"^[^\S\n]*([^:=\n]{1,80}?)[^\S\n]*[:=][^\S\n]*(.{0,200}?)[^\S\n]*$", re.MULTILINE)
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
    """What the information files tell of one subject; phases are counted from 1."""

    ed: int | None = None
    es: int | None = None
    slice_mm: float | None = None  # distance of slices
    phases: float | None = None  # of a cine
    person: Person = field(default_factory=Person)
    flags: tuple[Flag, ...] = ()  # for facts whose values are not usable
    files: tuple[str, ...] = ()


def facts_of_subjects(
    convention: Convention, subject_of: Mapping[str, str], files: Mapping[str, Path]
) -> dict[str, Facts]:
    """Read the information files of a set, given the subject of each image and mask by its path.

    InputError if a file cannot be read or lacks a column.
    """
    values: dict[str, Values] = {subject: {} for subject in subject_of.values()}
    sources: dict[str, list[str]] = {subject: [] for subject in values}
    counts_from: dict[FactName, int] = {}
    for rule in convention.information:
        counts_from |= {name: fact.counts_from for name, fact in rule.facts.items()}
        pattern = convention.pattern(rule.files)
        for path, match in ((path, pattern.match(path)) for path in sorted(files)):
            if match is None:
                continue
            text = _content(path, files[path])
            subject_named = match.groupdict().get("subject") or _only_subject(path, subject_of)
            entries = (
                [(subject_named, _pairs(rule, path, text))]
                if rule.kind == "pairs"
                else _rows(rule, path, text)
            )
            for subject, facts in entries:
                if subject in values:
                    values[subject] |= facts
                    sources[subject].append(path)
    groups = convention.group_by_subject.items()
    for subject, stated in values.items():
        by_name = [group for start, group in groups if subject.lower().startswith(start.lower())]
        group: Values = {"group": by_name[0]} if by_name else {}
        values[subject] = {**convention.facts, **group, **stated}
    return {
        subject: replace(_facts(stated, counts_from), files=tuple(sources[subject]))
        for subject, stated in values.items()
    }


def _only_subject(path: str, subject_of: Mapping[str, str]) -> str:
    """Return the subject whose files alone lie in a file's folder, or below it; else nothing."""
    folder = PurePosixPath(path).parent
    subjects = {
        subject for image, subject in subject_of.items() if PurePosixPath(image).is_relative_to(folder)
    }
    return subjects.pop() if len(subjects) == 1 else ""


def _content(path: str, place: Path) -> str:
    try:
        stored = read_bytes(place, _MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason}); copy it again") from None
    try:
        text = decode(stored)
    except UnicodeError:
        utf16 = stored.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as spreadsheets save text
        text = stored.decode("utf-16" if utf16 else "latin-1", "replace")  # others are Western European
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _pairs(rule: InfoRule, path: str, text: str) -> Values:
    pairs: dict[str, str] = {}
    for match in _PAIR.finditer(text):
        if pairs.setdefault(_plain(match[1]), match[2]) != match[2]:
            raise InputError(f"{path}: {match[1]!r} stands twice with two values; correct the file")
    columns = {name: _plain(fact.column) for name, fact in rule.facts.items()}
    return {name: pairs[column] for name, column in columns.items() if column in pairs}


def _rows(rule: InfoRule, path: str, text: str) -> Iterator[tuple[str, Values]]:
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    try:
        rows = parse_rows(text, delimiter)
    except ValueError as error:
        raise InputError(f"{path}: {error}; expected a table with the column {rule.subject}") from None
    names = {_plain(name): name for row in rows[:1] for name in row}
    key = names.get(_plain(rule.subject or ""))
    if key is None:
        raise InputError(
            f"{path}: has no column {rule.subject!r}, only {', '.join(sorted(names.values())[:12])}; "
            "get the table of the set as it was published"
        )
    columns = {name: names.get(_plain(fact.column), "") for name, fact in rule.facts.items()}
    for row in rows:
        subject = (row.get(key) or "").strip()
        subject = subject.zfill(rule.subject_width) if subject.isdigit() else subject
        yield subject, {name: (row.get(at) or "").strip() for name, at in columns.items() if at}


def _plain(name: str) -> str:
    """Return a key without case, daggers and repeated blanks: `Sex†` is `sex`."""
    return " ".join(re.sub(r"[^\w()+&/.-]+", " ", name).lower().split())


def _facts(values: Values, counts_from: Mapping[FactName, int]) -> Facts:
    text = {name: value.strip() for name, value in values.items() if value.strip().lower() not in _MISSING}
    number = {name: _in_range(name, text[name]) for name in _RANGES if name in text}
    wrong = {name for name, value in number.items() if value is None}
    phase = {
        name: round(at) + 1 - counts_from.get(name, 1)
        for name in ("ed", "es")
        if (at := number.get(name)) is not None and at == int(at)
    }
    phase = {name: at for name, at in phase.items() if at >= 1}
    is_one = len(phase) == 2 and phase["ed"] == phase["es"]
    is_odd = is_one or {name for name in ("ed", "es") if name in number} != phase.keys()
    age = number.get("age")
    person = Person(
        sex=_SEXES.get(text.get("sex", "").lower(), ""),
        age="" if age is None else f"{int(age):03d}Y",
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
    flags = [Flag.VALUES] * bool(wrong) + [Flag.TIMES] * is_odd
    return Facts(ed, es, number.get("slice_mm"), number.get("phases"), person, tuple(flags))


def _in_range(name: FactName, value: str) -> float | None:
    match, (low, high) = _NUMBER.search(value), _RANGES[name]
    parsed = float(match[0].replace(",", ".")) if match else math.nan
    return parsed if low < parsed < high else None
