"""The lexicon for reading replies: `replies.yaml`, validated and indexed once."""

import functools
from importlib import resources
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict

WordKind = Literal[
    "join",
    "either",
    "label",
    "not",
    "no",
    "yes",
    "perhaps",
    "verb",
    "reason",
    "but",
    "also",
    "subject",
    "pronoun",
    "neutral",
]
_STRICT = ConfigDict(frozen=True, extra="forbid")


class Tag(BaseModel):
    """What opens and closes a block: patterns, and of an answer literal tags."""

    model_config = _STRICT

    open: str
    close: str


class SecondThoughts(BaseModel):
    """What follows an answer and may change it."""

    model_config = _STRICT

    courtesies: tuple[str, ...]
    doubts: tuple[str, ...]
    alternatives: tuple[str, ...]
    reaffirms: tuple[str, ...]
    provisional: tuple[str, ...]
    ordering: tuple[str, ...]
    contrasts: tuple[str, ...]
    interjections: tuple[str, ...]


class Commits(BaseModel):
    """Words of a commitment, before and after its letters."""

    model_config = _STRICT

    before: tuple[str, ...]
    after: tuple[str, ...]
    adds: tuple[str, ...]
    removes: tuple[str, ...]
    denies: tuple[str, ...]
    hedges: tuple[str, ...]
    processes: tuple[str, ...]


class Words(BaseModel):
    """The lexicon of `replies.yaml`."""

    model_config = _STRICT

    think: tuple[Tag, ...]
    residue: tuple[Tag, ...]
    finals: tuple[Tag, ...]
    answer_tags: tuple[Tag, ...]
    answer_nouns: dict[str, tuple[str, ...]]
    answer_verbs: tuple[str, ...]
    choosing: dict[str, tuple[str, ...]]
    suppositions: tuple[str, ...]
    others_answers: tuple[str, ...]
    formats: dict[str, tuple[str, ...]]
    conditions: tuple[str, ...]
    withdrawals: tuple[str, ...]
    json_keys: tuple[str, ...]
    json_labels: tuple[str, ...]
    json_others: tuple[str, ...]
    placeholders: tuple[str, ...]
    words: dict[WordKind, tuple[str, ...]]
    not_options: tuple[str, ...]
    heads: tuple[str, ...]
    not_heads: tuple[str, ...]
    synonyms: dict[str, tuple[str, ...]]
    conclusions: tuple[str, ...]
    plain: tuple[str, ...]
    refusals: tuple[str, ...]
    headings: dict[Literal["yes", "no"], tuple[str, ...]]
    findings: tuple[str, ...]
    reversed_in: dict[str, dict[Literal["yes", "no"], tuple[str, ...]]]
    other_causes: tuple[str, ...]
    despite: tuple[str, ...]
    structures: dict[str, tuple[str, ...]]
    topics: dict[str, dict[str, tuple[str, str]]]
    familiar: tuple[str, ...]
    second_thoughts: SecondThoughts
    commits: Commits


@functools.cache
def words() -> Words:
    """Load the lexicon once."""
    text = resources.files(__package__).joinpath("replies.yaml").read_text(encoding="utf-8")
    return Words.model_validate(yaml.safe_load(text))


@functools.cache
def kinds() -> dict[str, WordKind]:
    """Return the kind of each word and phrase of the grammar; ValueError for a word of two kinds."""
    kind_of: dict[str, WordKind] = {}
    for kind, entries in words().words.items():
        for entry in entries:
            if kind_of.setdefault(entry, kind) != kind:
                raise ValueError(
                    f"replies.yaml: {entry!r} is of kinds {kind_of[entry]!r} and {kind!r}; keep one"
                )
    return kind_of
