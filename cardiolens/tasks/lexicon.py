"""The words of reports: a data file of patterns, loaded and compiled (specification 3.2)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from cardiolens.tasks.catalogue import DATA


@dataclass(frozen=True)
class Finding:
    """Words that assert values of a field, or, negated or called normal, its normal value."""

    field: str
    pattern: re.Pattern[str]
    values: tuple[str, ...]  # empty: the words only name what may be normal
    normal: str
    chamber: str | None  # lv or rv, where the same words describe either
    attributes: str | None  # group of attributes that attach to it


@dataclass(frozen=True)
class Attribute:
    """Words that say where a finding is, or how it is distributed."""

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


@lru_cache(maxsize=16)
def load_lexicon(protocol: str, sequence: str, folder: Path | None = None) -> Lexicon:
    """The lexicon of a protocol for the reports of one sequence."""
    tree = yaml.safe_load(((folder or DATA / protocol) / "lexicon.yaml").read_text(encoding="utf-8"))
    own, cues = tree["sequences"][sequence], {name: _words(words) for name, words in tree["cues"].items()}
    return Lexicon(
        findings=tuple(_finding(entry) for entry in own["findings"]),
        attributes=tuple(_attributes(own["attributes"])),
        chambers={name: _words(words) for name, words in tree["chambers"].items()},
        splits=_words(tree["splits"]),
        verbs=_words([tree["verbs"]]),
        **cues,
    )


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
