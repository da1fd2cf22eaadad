"""The words by which replies are read, and the part of a reply that counts."""

import functools
import re
import unicodedata
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict

_EMPHASIS = re.compile(r"\*+|`+|__|\$+|[\u200b-\u200f\u2060\ufeff]")
_LATEX = re.compile(r"\\(?:boxed|text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}")


class Tag(BaseModel):
    """The two ends of a block of reasoning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    open: str
    close: str


class Words(BaseModel):
    """The lexicon of `replies.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    think: tuple[Tag, ...]
    answer_words: tuple[str, ...]
    answer_verbs: tuple[str, ...]
    choosing: tuple[str, ...]
    letter_words: tuple[str, ...]
    conjunctions: tuple[str, ...]
    alternatives: tuple[str, ...]
    after_letter: tuple[str, ...]
    negations: tuple[str, ...]
    refusals: tuple[str, ...]


@functools.cache
def words() -> Words:
    """The lexicon, read once."""
    text = resources.files(__package__).joinpath("replies.yaml").read_text(encoding="utf-8")
    return Words.model_validate(yaml.safe_load(text))


def visible(text: str) -> str:
    """What a reply says outside its reasoning, in NFKC, without Markdown and LaTeX marks."""
    plain = _EMPHASIS.sub("", unicodedata.normalize("NFKC", without_thought(text)))
    return _LATEX.sub(r"\1", plain).strip()


def without_thought(text: str) -> str:
    """A reply without its think blocks.

    A block that is never closed ends the reply. A close without an open ends a block that the prompt opened.
    """
    for tag in words().think:
        text = _without(text, tag)
    return text


def _without(text: str, tag: Tag) -> str:
    kept = ""
    while tag.open in text:
        before, _, text = text.partition(tag.open)
        kept += _after_orphan(before, tag)
        text = text.partition(tag.close)[2]
    return kept + _after_orphan(text, tag)


def _after_orphan(text: str, tag: Tag) -> str:
    return text.rpartition(tag.close)[2]


@functools.cache
def _refusal() -> re.Pattern[str]:
    return re.compile("|".join(words().refusals), re.IGNORECASE)


def refuses(plain: str) -> bool:
    """Whether a visible reply declines to answer."""
    return _refusal().search(plain.replace("’", "'")) is not None
