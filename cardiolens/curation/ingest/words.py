"""Match descriptions against `words.yaml`; the text itself is never kept, because it may name people."""

import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

import yaml


@dataclass(frozen=True, slots=True)
class Words:
    """Meaning of a description; `kind` is a reason to leave out the series by its name."""

    kind: str | None = None
    sequences: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    component: str | None = None
    state: str | None = None

    @property
    def sequence(self) -> str | None:
        """The first sequence that the words name, or None."""
        return self.sequences[0] if self.sequences else None

    @property
    def view(self) -> str | None:
        """The view that the words name, or None unless they name exactly one."""
        return self.views[0] if len(self.views) == 1 else None


def words_of(*texts: str) -> Words:
    """Match several texts; each field comes from the first text that sets it."""
    read = [_words(_normal(text)) for text in texts if text.strip()]
    values = {each.name: [getattr(words, each.name) for words in read] for each in fields(Words)}
    return Words(**{name: next(filter(None, stated)) for name, stated in values.items() if any(stated)})


@cache
def are_vocabulary(text: str) -> bool:
    """Return whether a text consists of nothing but words of the vocabulary."""
    has_others = re.search(r"[^\W_]", re.sub(r"[\x00-\x7f]", "", text))
    return not has_others and bool(_any_word().fullmatch(_normal(text)))


@cache
def _any_word() -> re.Pattern[str]:
    lists = (pattern for meanings in vocabulary().values() for pattern in meanings.values())
    words = "|".join(lists)
    return re.compile(rf"(?:{words})(?: (?:{words}))*")


@cache
def vocabulary() -> dict[str, dict[str, str]]:
    """Return the patterns of words.yaml by list and meaning; their sources are for readers."""
    text = files("cardiolens.curation.ingest").joinpath("words.yaml").read_text(encoding="utf-8")
    return {
        kind: {str(name): "|".join(each["pattern"] for each in entries) for name, entries in meanings.items()}
        for kind, meanings in yaml.safe_load(text).items()
    }


@cache
def _words(text: str) -> Words:
    sequences = _matching("sequences", text)
    if {"lge", "perfusion", "cine"} & set(sequences):  # may be weighted by T1 as well
        sequences = tuple(name for name in sequences if name != "other")
    kind, component, state = (
        next(iter(_matching(each, text)), None) for each in ("kinds", "components", "states")
    )
    if kind == "other_part" and "lv" in text.split() and not re.search(r"\b(rv|rvot|lvot|lv ot)\b", text):
        kind = None  # "LV 2ch"
    return Words(kind, sequences, _matching("views", text), component, state)


def _matching(kind: str, text: str) -> tuple[str, ...]:
    """Return the meanings of a list that a text names."""
    return tuple(name for name, each in vocabulary()[kind].items() if _compiled(each).search(text))


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
