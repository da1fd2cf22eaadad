"""The value of an answer: a list of option letters, option texts, or letters with their own texts."""

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from cardiolens.protocol.replies.reply_words import JOINS, LABELS

Option = tuple[str, str]  # letter and text, as displayed

_WORD = "[A-Za-z0-9À-ɏ_]"  # next to one of these, a letter or a text is part of a longer word
_ENDS = rf"(?!{_WORD}|-{_WORD}|['’]{_WORD})"
_OPENING, _CLOSING = r"[\(\[\{<\"'“‘「【]*", r"[\)\]\}>\"'”’」】]*"
_APART = r"[\s‐-–-]"  # between the words of a spelling
_BRACKETED = re.compile(r"\s*\(([^()]*)\)")
_BULLET = re.compile(r"[ \t]*(?:[-•·*][ \t]+)?")
_BEFORE_TEXT = re.compile(r"[ \t]*[.):=–—-]?[ \t]*")
_ENDS_ENTRY = re.compile(r"[ \t]*[.;)]*[ \t]*(?:,|\n|$)")


class Value(NamedTuple):
    """The options that a value names, each once and in order, and where it ends."""

    letters: tuple[str, ...]
    end: int


class _Patterns(NamedTuple):
    """Patterns of the letters and texts of a question, whatever letter stands before which text."""

    letter: re.Pattern[str]
    text: re.Pattern[str]
    any_option: re.Pattern[str]
    letters_in_a_row: re.Pattern[str]
    join: re.Pattern[str]


@functools.lru_cache(maxsize=4096)
def _patterns(letters: str, spellings: tuple[str, ...]) -> _Patterns:
    letter, text = f"[{re.escape(letters)}]", "|".join(map(_pattern, spellings)) or "(?!)"
    label, joins = rf"(?:(?:{LABELS})\b[ \t]*)*{_OPENING}", rf"(?:{JOINS})(?!{_WORD})[ \t]*"
    return _Patterns(
        re.compile(rf"{label}({letter}){_ENDS}{_CLOSING}", re.IGNORECASE),
        re.compile(rf"{label}({text}){_ENDS}{_CLOSING}", re.IGNORECASE),
        re.compile(rf"(?<!{_WORD})(?:({letter})|({text}))(?!{_WORD})", re.IGNORECASE),
        re.compile(rf"{_OPENING}((?:{letter}[ \t]*){{2,}}){_CLOSING}[ \t]*[.]?[ \t]*(?=\n|$)"),
        re.compile(rf"(?:[ \t]*[,;、&+]|\n)[ \t]*(?:[-•·*][ \t]+)?(?:{joins})?|[ \t]*{joins}", re.IGNORECASE),
    )


class Values:
    """Reads values for one question."""

    def __init__(self, options: tuple[Option, ...]) -> None:
        self.letters = tuple(letter for letter, _ in options)
        spellings = _spellings(options)
        self._letter_of = {folded(spelling): letter for spelling, letter in spellings.items()}
        longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        self._patterns = _patterns("".join(sorted(self.letters)), tuple(longest_first))

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def of(options: tuple[Option, ...]) -> "Values":
        """The (cached) reader of these options."""
        return Values(options)

    def read(self, text: str, start: int = 0, *, texts: bool = True) -> Value | None:
        """The list that stands at a position, as long as it goes; None without one.

        Without `texts`, letters alone: "A. Hypertrophic obstructive disease" has the text of no option.
        """
        position = _past(_BULLET, text, start)
        if row := self._patterns.letters_in_a_row.match(text, position):
            letters = "".join(row[1].split())
            return Value(tuple(letters), row.end(1)) if len(set(letters)) == len(letters) else None
        keys: list[str] = []
        end = position
        while entry := self._entry(text, position, texts=texts):
            keys.append(entry[0])
            end = entry[1]
            join = self._patterns.join.match(text, end)
            if join is None:
                break
            position = join.end()
        return Value(tuple(dict.fromkeys(keys)), end) if keys else None

    def options_in(self, text: str) -> Iterator[str]:
        """The keys of all options that a text speaks of: by a capital letter, "b.", "b)" or their texts."""
        for match in self._patterns.any_option.finditer(text):
            if match[2]:
                yield self._letter_of[folded(match[2])]
            elif match[1].isupper() or text[match.end() : match.end() + 1] in (".", ")"):
                yield match[1].upper()

    def _entry(self, text: str, position: int, *, texts: bool) -> tuple[str, int] | None:
        """The key and the end of one entry: a letter, a text, or both of the same option."""
        if letter := self._patterns.letter.match(text, position):
            key, end = letter[1].upper(), letter.end()
            own_text = self._patterns.text.match(text, _past(_BEFORE_TEXT, text, end)) if texts else None
            if own_text:  # the letter of one option with the text of another is no entry
                return (key, own_text.end()) if self._letter_of[folded(own_text[1])] == key else None
            return (key, end) if letter[1].isupper() or _ENDS_ENTRY.match(text, end) else None
        text_alone = self._patterns.text.match(text, position) if texts else None
        if text_alone is None:
            return None
        key, end = self._letter_of[folded(text_alone[1])], text_alone.end()
        own_text = self._patterns.letter.match(text, _past(_BEFORE_TEXT, text, end))
        return (key, own_text.end()) if own_text and own_text[1] == key else (key, end)


def folded(text: str) -> str:
    """A text without regard to case, spaces, hyphens, Markdown and British spelling."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("ae", "e").replace("oe", "e")
    return re.sub(r"[\s‐-–*`$-]+", "", plain)


def _past(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The position behind a pattern that may match nothing."""
    match = pattern.match(text, position)
    return match.end() if match else position


def _spellings(options: tuple[Option, ...]) -> dict[str, str]:
    """The key of each spelling that one option alone has: a text, without its brackets, their acronym."""
    owners: dict[str, dict[str, str]] = {}
    for key, text in options:
        acronyms = [inner for inner in _BRACKETED.findall(text) if inner.isupper()]
        for spelling in (text, _BRACKETED.sub("", text), *acronyms):
            owners.setdefault(folded(spelling), {})[key] = " ".join(re.sub(r"[*`$]", "", spelling).split())
    return {
        spelling: key
        for fold, by_key in owners.items()
        if fold and len(by_key) == 1
        for key, spelling in by_key.items()
    }


def _pattern(spelling: str) -> str:
    parts = [
        re.escape(part) for part in re.split(rf"{_APART}+", unicodedata.normalize("NFKC", spelling)) if part
    ]
    return re.sub("[ao]e", lambda match: f"{match[0][0]}?e", rf"{_APART}*".join(parts))
