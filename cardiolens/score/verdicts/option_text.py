"""Spellings of a question's option texts in replies."""

import functools
import re
import unicodedata
from collections.abc import Container
from dataclasses import dataclass

from cardiolens.report_text.reply_lexicon import kinds, words

Option = tuple[str, str]

LATIN = "A-Za-z0-9À-ɏ_"  # next to one of these, a letter or a text is part of a longer word
_BRACKETS = re.compile(r"\s*\(([^()]*)\)")
_GRADES = re.compile(r"(\w+) to (\w+)((?: \w+)*)")
_WORD = re.compile(rf"[{LATIN}]+(?:-[{LATIN}]+)*")
_ACRONYM = re.compile(r"[A-Z]{2,}")
_COMMON = frozenset({"of", "the", "a", "an", "in", "at", "by", "to", "within", "one", "and", "or", "near"})


@dataclass(frozen=True, slots=True)
class OptionTexts:
    """Unambiguous spellings of the options of one question.

    A full spelling is the text, or a part that says as much: without its brackets, their acronym, one side of
    an "or", one grade of "mild to moderate". A short one ("basal") lacks its last word and counts in lists.
    """

    options: tuple[Option, ...]
    keys: frozenset[str]
    full: dict[str, str]  # folded spelling -> key
    short: dict[str, str]
    parts: dict[str, str]  # word of one option's text only -> key
    own: dict[str, frozenset[str]]  # key -> all words of its text
    spelled: dict[str, str]  # text in small letters, with and without its brackets -> key
    pattern: str
    spelling: re.Pattern[str]  # of any option, in any case
    listing: re.Pattern[str]  # all options with their letters in order: the prompt repeated
    unlettered: re.Pattern[str]  # all options without their letters, in order and written as in the prompt

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def of(options: tuple[Option, ...]) -> "OptionTexts":
        """Build the spellings of options (key, text)."""
        texts = {key: plain(text) for key, text in options}
        wordings = {key: _worded(_full(text), texts) for key, text in texts.items()}
        shortened = {key: _worded(_short(text), texts) for key, text in texts.items()}
        full = _unambiguous(wordings, {})
        short = _unambiguous(shortened, full)
        words_of_options = {key: frozenset(_WORD.findall(text.lower())) for key, text in texts.items()}
        spellings = [text for key in texts for text in (*wordings[key], *shortened[key])]
        return OptionTexts(
            options=options,
            keys=frozenset(texts),
            full=full,
            short=short,
            parts=_parts(words_of_options),
            own=words_of_options,
            spelled={
                spelling.lower(): key
                for key in texts
                for spelling in _worded([texts[key], _BRACKETS.sub("", texts[key])], texts)
            },
            pattern=(pattern := _any_of(spellings)),
            spelling=re.compile(pattern, re.IGNORECASE),
            listing=_listing(texts),
            unlettered=_unlettered(texts),
        )

    def without_listing(self, text: str) -> str:
        """Remove the list of all options, which a model may repeat from the prompt."""
        remainder, count = self.listing.subn(" ", text)
        first = self.options[0][0] if self.options else ""
        is_loop = count > 1 and remainder.strip().startswith(first)
        if is_loop:
            return ""  # a list that repeats ends in its middle
        return self.unlettered.sub(" ", remainder)

    def key_of(self, spelling: str) -> tuple[str, bool] | None:
        """Look up the option of a spelling in any case and number, and whether the spelling is full."""
        fold = folded(spelling)
        for candidate in (fold, fold.removesuffix("s")):
            if key := self.full.get(candidate):
                return key, True
            if key := self.short.get(candidate):
                return key, False
        return None


def plain(text: str) -> str:
    """Normalise a text to NFKC with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def folded(text: str) -> str:
    """Fold case, spaces, hyphens and British spelling."""
    return re.sub(r"[\s‐-–-]+", "", text).casefold().replace("ae", "e").replace("oe", "e")


def _worded(spellings: list[str], letters: Container[str]) -> list[str]:
    """Leave out spellings that are the letter of an option, e.g. a side of "A or B"."""
    return [spelling for spelling in spellings if spelling.upper() not in letters]


def _full(text: str) -> list[str]:
    bare = _BRACKETS.sub("", text)
    acronyms = [inner for inner in _BRACKETS.findall(text) if _ACRONYM.fullmatch(inner)]
    remarks = [inner for inner in _BRACKETS.findall(text) if " " in inner and " or " not in inner]
    sides = bare.split(" or ") if " or " in bare and "," not in bare else []
    plurals = [f"{bare[:-2]}a"] if bare.endswith("um") else []
    sized = [f"{bare[:-5]}-sized"] if bare.endswith(" size") else []
    synonyms = [synonym for name in (bare, *sides) for synonym in words().synonyms.get(name.lower(), ())]
    return [text, bare, *acronyms, *remarks, *sides, *plurals, *sized, *synonyms, *_grades(bare)]


def _grades(text: str) -> list[str]:
    match = _GRADES.fullmatch(text)
    return [match[1] + match[3], match[2] + match[3]] if match else []


def _short(text: str) -> list[str]:
    start, _, last = _BRACKETS.sub("", text).rpartition(" ")
    return [start] if start and last.lower() in words().heads else []


def _unambiguous(spellings: dict[str, list[str]], full: dict[str, str]) -> dict[str, str]:
    owners: dict[str, set[str]] = {}
    for key, texts in spellings.items():
        for text in texts:
            owners.setdefault(folded(text), set()).add(key)
    return {
        fold: key for fold, (key, *further) in owners.items() if fold and not further and fold not in full
    }


def _parts(words_by_key: dict[str, frozenset[str]]) -> dict[str, str]:
    """Words that only one option has, except those with another meaning in the grammar."""
    owners: dict[str, list[str]] = {}
    for key, option_words in words_by_key.items():
        for word in option_words - _COMMON - kinds().keys():
            owners.setdefault(word, []).append(key)
    return {word: keys[0] for word, keys in owners.items() if len(keys) == 1}


def _any_of(spellings: list[str]) -> str:
    longest_first = sorted(set(spellings) - {""}, key=lambda text: (-len(text), text))
    return rf"(?:{'|'.join(map(_pattern, longest_first)) or '(?!)'})s?"


def _pattern(text: str) -> str:
    spelled = r"\s+".join(map(re.escape, text.split())).replace(r"\-", r"[\s‐-–-]?")
    return re.sub("[ao]e", lambda match: f"{match[0][0]}?e", spelled)


def _listing(texts: dict[str, str]) -> re.Pattern[str]:
    entries = [
        rf"\(?{re.escape(key)}(?:\s*[.):=–—-]\s*|[ \t]+){_pattern(text)}" for key, text in texts.items()
    ]
    return re.compile(r"\s*[;,|]?\s*(?:[-•]\s*)?".join(entries) or "(?!)", re.IGNORECASE)


def _unlettered(texts: dict[str, str]) -> re.Pattern[str]:
    between = r"\s*[;,|/\n]\s*(?:[-•*]\s*|\d{1,2}[.)]\s*)?"
    return re.compile(rf"{between.join(map(_pattern, texts.values()))}(?!\w)" if len(texts) > 2 else "(?!)")
