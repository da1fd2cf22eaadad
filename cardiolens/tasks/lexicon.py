"""Lexicon of report text: a data file of patterns, loaded and compiled (protocol 3.2)."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.errors import InputError
from cardiolens.tasks.protocol import read_yaml


@dataclass(frozen=True)
class Finding:
    """Words that assert values of a field. Negated or called normal, they assert its normal value."""

    field: str
    pattern: re.Pattern[str]
    values: tuple[str, ...]  # empty: the words name a structure, which may be called normal
    normal: str
    chamber: str | None  # lv or rv, if the same words describe either ventricle
    attributes: str | None  # group of attributes that attach to this finding


@dataclass(frozen=True)
class Attribute:
    """Words for the location or the distribution of a finding."""

    group: str
    field: str
    value: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Lexicon:
    """All patterns for the reports of one sequence."""

    findings: tuple[Finding, ...]
    attributes: tuple[Attribute, ...]
    chambers: Mapping[str, re.Pattern[str]]
    negating: re.Pattern[str]
    excepting: re.Pattern[str]
    negated_behind: re.Pattern[str]
    normal: re.Pattern[str]
    scope_ends: re.Pattern[str]
    splits: re.Pattern[str]
    verbs: re.Pattern[str]


def load_lexicon(path: Path, sequence: str, fields: Mapping[str, Collection[str]]) -> Lexicon:
    """Load the words of one sequence's reports; `fields` holds the legal texts of each report field.

    InputError names a missing entry, an invalid pattern, or a field or text that no report has.
    """
    tree = read_yaml(path)
    try:
        own, cues = tree["sequences"][sequence], {name: _words(words) for name, words in tree["cues"].items()}
        lexicon = Lexicon(
            findings=tuple(_finding(entry) for entry in own["findings"]),
            attributes=tuple(_attributes(own["attributes"])),
            chambers={name: _words(words) for name, words in tree["chambers"].items()},
            splits=_words(tree["splits"]),
            verbs=_words([tree["verbs"]]),
            **cues,
        )
    except KeyError as error:
        raise InputError(
            f"{path}: {error} is missing; the reports of {sequence!r} need sequences.{sequence} with "
            "findings and attributes, and cues, chambers, splits and verbs"
        ) from None
    except (TypeError, AttributeError, re.error) as error:
        raise InputError(f"{path}: words of {sequence!r} cannot be used ({error}); correct them") from None
    for field, value in _assertions(lexicon):
        if value not in fields.get(field, ()):
            raise InputError(
                f"{path}: {sequence}: no report has {value!r} as {field!r}; use the option texts of "
                f"{', '.join(fields)}"
            )
    return lexicon


def _assertions(lexicon: Lexicon) -> Iterator[tuple[str, str]]:
    """Yield every (field, option text) that words of a lexicon can assert."""
    for finding in lexicon.findings:
        yield from ((finding.field, value) for value in (*finding.values, finding.normal))
    yield from ((attribute.field, attribute.value) for attribute in lexicon.attributes)


def _words(patterns: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(patterns, key=len, reverse=True)
    return re.compile(rf"(?<![\w])(?:{'|'.join(longest_first)})(?![\w])")


def _finding(entry: Mapping[str, Any]) -> Finding:
    value = entry.get("value", [])
    return Finding(
        field=entry["field"],
        pattern=_words(entry["patterns"]),
        values=(value,) if isinstance(value, str) else tuple(value),
        normal=entry["normal"],
        chamber=entry.get("chamber"),
        attributes=entry.get("attributes"),
    )


def _attributes(groups: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]) -> list[Attribute]:
    return [
        Attribute(group, field, value, _words(patterns))
        for group, fields in groups.items()
        for field, values in fields.items()
        for value, patterns in values.items()
    ]
