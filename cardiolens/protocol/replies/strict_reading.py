"""The strict reader: the last mark of a reply, or the whole reply, and what follows it.

A value is a list of option letters, option texts, or letters with their own texts.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cardiolens.protocol.replies.marks import EXPLICIT, Mark, MarkRule, marks, refuses, visible
from cardiolens.protocol.replies.reply_words import DOUBTS, JOINS, LABELS, REASONS

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


RULES_VERSION = "2.1"

Status = Literal["read", "refused", "cut", "contradicted", "unread"]
Rule = Literal[MarkRule, "letters", "option_text", "none"]
_CUT = "length"  # the finish reason of a reply that its token limit ended
_LETTER = re.compile(r"(?<![^\W_])[A-Za-z](?![^\W_])")
_VISIBLE = re.compile(r"\S")
_OTHER_LETTER = re.compile(r"\W*[A-Z](?![^\W_])")  # also of no option: "ANSWER: F"
# What follows a complete list: its line's end, a full stop, a bracket or a reason.
_ENDS_VALUE = re.compile(
    rf"[ \t]*(?:\Z|\n(?!\s*[-•·*]\s)|[.!。](?![.\w])|[(|]|[-–—][ \t]|[,;，]?[ \t]*(?:{REASONS})\b)",
    re.IGNORECASE,
)
_DOUBT = re.compile(rf"(?<![^\W_])(?:{DOUBTS})(?![^\W_])|[?~→⇒]|->", re.IGNORECASE)
_SET_OFF = re.compile(r"[ \t]*(?:\n|[.](?:\s+(?![a-z])|$)|\()")
_REASONS = re.compile(r"[ \t.]*\n+\W*reason(?:s|ing)?\W*:", re.IGNORECASE)
_ENDS_REPLY = re.compile(r"[.。]?\Z")
_COMMA = re.compile(r" *, *")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply answers: letters of the options in their order, empty unless its status is `read`."""

    status: Status
    answers: tuple[str, ...] = ()
    rule: Rule = "none"


def read_reply(
    text: str, options: tuple[Option, ...], *, several: bool, finish_reason: str = "stop"
) -> Reading:
    """Read the last mark of a reply, with which all others must agree; without marks, the whole reply.

    A reply that its token limit cut is read by a complete explicit mark only.
    """
    values, plain, is_cut = Values.of(options), visible(text), finish_reason == _CUT
    reading = _of_marks(plain, values, several=several, is_cut=is_cut) or _before_reasons(plain, values)
    if reading is None and not is_cut:
        reading = _of_whole(plain, values, several=several)
    if reading and reading.status == "read" and (several or len(reading.answers) == 1):
        in_order = tuple(letter for letter in values.letters if letter in reading.answers)
        return Reading("read", in_order, reading.rule)
    if is_cut:
        return Reading("cut")
    if reading is None:
        return Reading("refused" if refuses(plain) else "unread")
    return Reading("contradicted" if reading.status == "contradicted" else "unread", (), reading.rule)


def _of_marks(plain: str, values: Values, *, several: bool, is_cut: bool) -> Reading | None:
    """What the last mark says that names options; None if no mark does."""
    all_marks = [mark for mark in marks(plain) if not is_cut or mark.rule in EXPLICIT]
    valued = [(mark, value) for mark in all_marks if (value := _value(plain, mark, values)) is not None]
    if not valued:
        return None
    mark, value = valued[-1]
    if not value.letters:
        return Reading("unread", (), mark.rule)
    end = value.end if mark.value is None else mark.end
    is_whole = "\n" in plain[end:] if mark.value is None else mark.is_closed
    if is_cut and not is_whole:
        return Reading("cut", (), mark.rule)
    agrees = all(set(other.letters) == set(value.letters) for _, other in valued if other.letters)
    if agrees and _is_silent(plain[end:], value, values, several=several):
        return Reading("read", value.letters, mark.rule)
    return Reading("contradicted", (), mark.rule)


_UNREADABLE = Value((), 0)


def _value(plain: str, mark: Mark, values: Values) -> Value | None:
    """The value of a mark; _UNREADABLE if it names options otherwise, None if it names none."""
    if mark.value is not None:
        value = values.read(mark.value)
        if value and not mark.value[value.end :].strip(" .\n"):
            return value
        return _UNREADABLE if any(values.options_in(mark.value)) else None
    start = next_character.start() if (next_character := _VISIBLE.search(plain, mark.end)) else len(plain)
    for texts in (True, False):
        value = values.read(plain, start, texts=texts)
        if value and _ENDS_VALUE.match(plain, value.end):
            return value
    line_end = plain.find("\n", start)
    line = plain[start : line_end if line_end >= 0 else len(plain)]
    return _UNREADABLE if any(values.options_in(line)) or _OTHER_LETTER.match(line) else None


def _is_silent(rest: str, value: Value, values: Values, *, several: bool) -> bool:
    """Whether what follows an answer puts nothing in doubt and names no option but the one chosen."""
    allowed = set() if several else set(value.letters)
    return _DOUBT.search(rest) is None and set(values.options_in(rest)) <= allowed


def _before_reasons(plain: str, values: Values) -> Reading | None:
    """Letters before a line `Reason:`, which some prompts ask for; capitals of the reasons are no letters."""
    value = values.read(plain)
    is_answer = value and _LETTER.search(plain[: value.end]) and _REASONS.match(plain, value.end)
    return Reading("read", value.letters, "letters") if value and is_answer else None


def _of_whole(plain: str, values: Values, *, several: bool) -> Reading | None:
    """A reply that is nothing but an answer, or begins or ends with letters."""
    value = values.read(plain)
    if value and len(value.letters) == len(values.letters) > 2:
        is_list = several and _COMMA.split(plain.strip(" .")) == list(values.letters)
        return Reading("read", values.letters, "letters") if is_list else None  # else those of the prompt
    if value and _ENDS_REPLY.match(plain, value.end):
        return Reading("read", value.letters, "letters" if _LETTER.search(plain) else "option_text")
    return _at_beginning(plain, values, several=several) or _on_last_line(plain, values)


def _at_beginning(plain: str, values: Values, *, several: bool) -> Reading | None:
    """Letters that a full stop, a bracket or a line's end sets off from an explanation of nothing else."""
    for texts in (True, False):
        value = values.read(plain, texts=texts)
        if value and _LETTER.search(plain[: value.end]) and _SET_OFF.match(plain, value.end):
            is_silent = _is_silent(plain[value.end :], value, values, several=several)
            return Reading("read", value.letters, "letters") if is_silent else None
    return None


def _on_last_line(plain: str, values: Values) -> Reading | None:
    """Letters alone on the last line, behind a sentence and not under a heading."""
    before, _, line = plain.rpartition("\n")
    value = values.read(line)
    is_alone = value and not line[value.end :].strip(" .") and _LETTER.search(line)
    if value and is_alone and before.rstrip().endswith((".", "。")):
        return Reading("read", value.letters, "letters")
    return None
