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
from cardiolens.curation.ingest.layouts.convention import Convention, FactName, FactRule, InfoRule
from cardiolens.curation.ingest.reasons import Flag

_MOST_BYTES = 16 << 20
_PAIR = re.compile(r"^[^\S\n]*([^:=\n]{1,80}?)[^\S\n]*[:=][^\S\n]*(.{0,200}?)[^\S\n]*$", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_MISSING = frozenset({"", "nan", "na", "n/a", "none", "unknown", "-", "?"})
_SEXES = {"f": "F", "female": "F", "w": "F", "m": "M", "male": "M"}
_HEIGHT_CM, _WEIGHT_KG = (30.0, 260.0), (1.0, 400.0)


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
    case: str = ""  # the set's own name of the subject, in other files of the set


def facts_of_subjects(
    convention: Convention, subject_of: Mapping[str, str], files: Mapping[str, Path]
) -> dict[str, Facts]:
    """Read the information files of a set, given the subject of each image and mask by its path.

    InputError if a file cannot be read or lacks a column.
    """
    subjects = set(subject_of.values())
    values: dict[str, dict[FactName, str]] = {subject: {} for subject in subjects}
    sources: dict[str, list[str]] = {subject: [] for subject in subjects}
    rules: dict[FactName, FactRule] = {}
    for rule in convention.information:
        rules |= rule.facts
        pattern = convention.pattern(rule.files)
        for path, place in sorted(files.items()):
            if (match := pattern.match(path)) is None:
                continue
            entries = (
                _pairs(rule, path, place, match.groupdict().get("subject") or _only_subject(path, subject_of))
                if rule.kind == "pairs"
                else (_rows(rule, path, place))
            )
            for subject, facts in entries:
                if subject in values:
                    values[subject] |= facts
                    sources[subject].append(path)
    for subject in subjects:
        for name, value in convention.facts.items():
            values[subject].setdefault(name, value)
        for start, group in convention.group_by_subject.items():
            if subject.lower().startswith(start.lower()):
                values[subject].setdefault("group", group)
    return {
        subject: replace(_facts(values[subject], rules), files=tuple(sources[subject]))
        for subject in subjects
    }


def _only_subject(path: str, subject_of: Mapping[str, str]) -> str:
    """Return the subject whose files alone lie in a file's folder, or below it; else nothing."""
    folder = PurePosixPath(path).parent
    subjects = {
        subject for other, subject in subject_of.items() if PurePosixPath(other).is_relative_to(folder)
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


def _pairs(rule: InfoRule, path: str, place: Path, subject: str) -> Iterator[tuple[str, dict[FactName, str]]]:
    pairs: dict[str, str] = {}
    for match in _PAIR.finditer(_content(path, place)):
        key = _plain(match[1])
        if key in pairs and pairs[key] != match[2]:
            raise InputError(f"{path}: {match[1]!r} stands twice with two values; correct the file")
        pairs[key] = match[2]
    yield (
        subject,
        {
            name: pairs[_plain(fact.column)]
            for name, fact in rule.facts.items()
            if _plain(fact.column) in pairs
        },
    )


def _rows(rule: InfoRule, path: str, place: Path) -> Iterator[tuple[str, dict[FactName, str]]]:
    text = _content(path, place)
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
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
    for row in rows:
        subject = (row.get(key) or "").strip()
        if subject.isdigit():
            subject = subject.zfill(rule.subject_width)
        entries = {
            name: (row.get(names[_plain(fact.column)]) or "").strip()
            for name, fact in rule.facts.items()
            if _plain(fact.column) in names
        }
        yield subject, entries


def _plain(name: str) -> str:
    """Return a key without case, daggers and repeated blanks: `Sex†` is `sex`."""
    return " ".join(re.sub(r"[^\w()+&/.-]+", " ", name).lower().split())


def _facts(values: Mapping[FactName, str], rules: Mapping[FactName, FactRule]) -> Facts:
    flags: list[Flag] = []

    def text(name: FactName) -> str:
        value = values.get(name, "").strip()
        return "" if value.lower() in _MISSING else value

    def number(name: FactName, low: float, high: float) -> float | None:
        value = text(name)
        if not value:
            return None
        match = _NUMBER.search(value)
        parsed = float(match[0].replace(",", ".")) if match else math.nan
        if not low < parsed < high:
            flags.append(Flag.VALUES)
            return None
        return parsed

    def phase(name: FactName) -> int | None:
        rule = rules.get(name)
        offset = 1 - (rule.counts_from if rule else 1)
        parsed = number(name, -0.5, 10_000)
        if parsed is None:
            return None
        if parsed != int(parsed) or parsed + offset < 1:
            flags.append(Flag.TIMES)
            return None
        return int(parsed) + offset

    age = number("age", 0, 130)
    person = Person(
        sex=_SEXES.get(text("sex").lower(), ""),
        age="" if age is None else f"{int(age):03d}Y",
        manufacturer=text("vendor"),
        tesla=number("field_tesla", 0, 20),
        height_cm=number("height_cm", *_HEIGHT_CM),
        weight_kg=number("weight_kg", *_WEIGHT_KG),
        site=text("site"),
        group=text("group"),
        lv_edv_ml=number("lv_edv_ml", 1, 1000),
        lv_esv_ml=number("lv_esv_ml", 0.5, 1000),
    )
    ed, es = phase("ed"), phase("es")
    if ed is not None and ed == es:
        flags.append(Flag.TIMES)
        ed = es = None
    slice_mm = number("slice_mm", 0.5, 50)
    phases = number("phases", 0, 10_000)
    return Facts(ed, es, slice_mm, phases, person, tuple(flags), case=text("case"))
