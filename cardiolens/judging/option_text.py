"""The texts of a question's options, and where a reply quotes them."""

import functools
import re
import unicodedata
from dataclasses import dataclass

from cardiolens.judging.reply import words


@dataclass(frozen=True, slots=True)
class OptionTexts:
    """Patterns that find the option texts of one question."""

    keys: dict[str, str]  # text in one case and spacing -> key
    any_case: re.Pattern[str]
    verbatim: re.Pattern[str]
    listing: re.Pattern[str]  # all options with their letters in order: the prompt repeated
    negated: re.Pattern[str]

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def of(options: tuple[tuple[str, str], ...]) -> "OptionTexts":
        """Patterns of options given as (key, text)."""
        longest_first = sorted(
            {_plain(text) for _, text in options} - {""}, key=lambda text: (-len(text), text)
        )
        any_text = rf"(?<![\w-])(?:{'|'.join(map(_pattern, longest_first)) or '(?!)'})(?![\w-])"
        entries = [rf"{re.escape(key)}\s*[.):]\s*{_pattern(_plain(text))}" for key, text in options]
        listing = r"\s*[;,]?\s*".join(entries) or "(?!)"
        return OptionTexts(
            keys={_folded(text): key for key, text in options},
            any_case=re.compile(any_text, re.IGNORECASE),
            verbatim=re.compile(any_text),
            listing=re.compile(listing, re.IGNORECASE),
            negated=re.compile(rf"\b(?:{'|'.join(words().negations)})\W+(?:an?\W+|the\W+)?$", re.IGNORECASE),
        )

    def masked(self, text: str) -> str:
        """A text without the option texts in it, so that "B. Mildly reduced" is the letter B."""
        return self.any_case.sub(" ", text)

    def without_listing(self, text: str) -> str:
        """A text without the list of all options, which a model repeats but does not choose."""
        return self.listing.sub(" ", text)

    def whole(self, text: str) -> tuple[str, ...]:
        """Keys of a text made of option texts alone, in any case."""
        found = self.any_case.findall(text)
        return self._keys(found) if found and not re.search(r"\w", self._rest(text)) else ()

    def quoted(self, text: str) -> tuple[str, ...]:
        """Keys of the option texts quoted verbatim, or in any case on lines that hold nothing else."""
        verbatim = [found[0] for found in self.verbatim.finditer(text) if not self._negated(text, found)]
        lines = [key for line in text.splitlines() for key in self.whole(line.rpartition(":")[2])]
        return tuple(dict.fromkeys((*self._keys(verbatim), *lines)))

    def _keys(self, found: list[str]) -> tuple[str, ...]:
        # re.IGNORECASE takes a few letters (dotless i) for others that casefold keeps apart
        known = (self.keys.get(_folded(text)) for text in found)
        return tuple(dict.fromkeys(key for key in known if key is not None))

    def _rest(self, text: str) -> str:
        return re.sub(
            rf"\b(?:{'|'.join(words().conjunctions)})\b", " ", self.masked(text), flags=re.IGNORECASE
        )

    def _negated(self, text: str, found: re.Match[str]) -> bool:
        return self.negated.search(text, max(0, found.start() - 40), found.start()) is not None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _folded(text: str) -> str:
    return _plain(text).casefold()


def _pattern(plain: str) -> str:
    return r"\s+".join(map(re.escape, plain.split()))
