"""Match descriptions against `words.yaml`; the text itself is never kept, because it may name people."""

import re
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import TypeAdapter

from cardiolens.config.base import Spec


class Pattern(Spec):
    """A regular expression and its source."""

    pattern: str
    source: str


class Vocabulary(Spec):
    """Patterns by the meaning that they stand for."""

    kinds: dict[str, tuple[Pattern, ...]]
    sequences: dict[str, tuple[Pattern, ...]]
    views: dict[str, tuple[Pattern, ...]]
    components: dict[str, tuple[Pattern, ...]]
    states: dict[str, tuple[Pattern, ...]]
    techniques: dict[str, tuple[Pattern, ...]]


@dataclass(frozen=True, slots=True)
class Words:
    """Meaning of a description; `kind` is a reason to leave out the series by its name."""

    kind: str | None = None
    sequences: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    component: str | None = None
    state: str | None = None
    technique: str | None = None

    @property
    def sequence(self) -> str | None:
        """The first sequence that the words name, or None."""
        return self.sequences[0] if self.sequences else None

    @property
    def view(self) -> str | None:
        """The view that the words name, or None unless they name exactly one."""
        return self.views[0] if len(self.views) == 1 else None


@cache
def vocabulary() -> Vocabulary:
    """Load the patterns of words.yaml."""
    text = files("cardiolens.curation.ingest").joinpath("words.yaml").read_text(encoding="utf-8")
    tree: dict[str, Any] = yaml.safe_load(text)
    tree["views"] = {str(name): value for name, value in tree["views"].items()}
    return TypeAdapter(Vocabulary).validate_python(tree)


def words_of(*texts: str) -> Words:
    """Match several texts; each field comes from the first text that sets it."""
    read = [_words(_normal(text)) for text in dict.fromkeys(texts) if text.strip()]
    merged = Words()
    for words in reversed(read):
        word_lists = {each.name: value for each in fields(Words) if (value := getattr(words, each.name))}
        merged = replace(merged, **word_lists)
    return merged


@cache
def are_vocabulary(text: str) -> bool:
    """Return whether a text consists of nothing but words of the vocabulary."""
    return not re.search(r"[^\W_]", re.sub(r"[\x00-\x7f]", "", text)) and bool(
        _any_word().fullmatch(_normal(text))
    )


@cache
def _any_word() -> re.Pattern[str]:
    every = vocabulary()
    lists = (every.kinds, every.sequences, every.views, every.components, every.states, every.techniques)
    words = "|".join(each.pattern for meanings in lists for entry in meanings.values() for each in entry)
    return re.compile(rf"(?:{words})(?: (?:{words}))*")


@cache
def _words(text: str) -> Words:
    entries = vocabulary()
    sequences = _matching(entries.sequences, text)
    if {"lge", "perfusion", "cine"} & set(sequences):  # may be weighted by T1 as well
        sequences = tuple(name for name in sequences if name != "other")
    views = _matching(entries.views, text)
    kind = next(iter(_matching(entries.kinds, text)), None)
    if kind == "other_part" and "lv" in text.split() and not re.search(r"\b(rv|rvot|lvot|lv ot)\b", text):
        kind = None  # "LV 2ch"
    once = (entries.components, entries.states, entries.techniques)
    return Words(kind, sequences, views, *(next(iter(_matching(each, text)), None) for each in once))


def _matching(patterns: dict[str, tuple[Pattern, ...]], text: str) -> tuple[str, ...]:
    return tuple(
        name for name, each in patterns.items() if any(_compiled(p.pattern).search(text) for p in each)
    )


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])")


def _normal(text: str) -> str:
    """Convert to lower case and split words, as in `tfl_loc-4Chamber`, `LV2CH` and `SAXcine`."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text)
    text = re.sub(
        r"[^a-z0-9]+", " ", text.lower().replace("*", " star ") if "*" in text[1:] else text.lower()
    ).strip()
    text = re.sub(r"(?<=\d)(?=(sl|slices?|bh)\b)", " ", text)
    text = re.sub(r"\b(lv|rv)(?=\d)", r"\1 ", text)
    text = re.sub(r"\b(\d+) (?=ch\b|chamber|kammer)", r"\1 ", text)
    return re.sub(
        r"\b(cine|fiesta|trufi|lge|psir|perf|stir|t2w)(?=sax|sa\b|[234]ch|lax|hla|vla)", r"\1 ", text
    )
