"""The marked answer of a reply: its last mark, if no other answer follows it (protocol 17.16)."""

import functools
import re

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.answer_marks import EXPLICIT, Mark, marks
from cardiolens.score.verdicts.certainty import Certainty
from cardiolens.score.verdicts.explained_away import is_another_cause
from cardiolens.score.verdicts.lists import end_of_list, leading
from cardiolens.score.verdicts.reading import CONTRADICTION, UNREADABLE, Keys, NotReadableError, Reading
from cardiolens.score.verdicts.reply import END
from cardiolens.score.verdicts.reply_clauses import NAMES
from cardiolens.score.verdicts.reply_tokens import Token, Tokenizer
from cardiolens.score.verdicts.second_thoughts import (
    after,
    doubt_on_line,
    is_draft,
    is_ordered,
    is_silent,
    last_counts,
    may_go_on,
)
from cardiolens.score.verdicts.taken_back import is_taken_back
from cardiolens.score.verdicts.topics import Topics
from cardiolens.score.verdicts.values import Values

_JOINS = frozenset({"comma", "join", "semicolon", "newline", "either", "perhaps", "close", "bar"})
_BEFORE_ENTRY = _JOINS | {"open", "label", "dash", "colon", "yes", "no", "bullet"}
_WITHIN_LETTERS = frozenset({"key", "comma", "join"})
_BULLET = re.compile(r"\s*(?:[-•·‣*|]|\(?(?:\d{1,2}|[ivx]{1,4})[.)])\s", re.IGNORECASE)
_OPENING = re.compile(
    r"[^\w\n]*(?:(?:so|thus|hence|therefore|final|my|the|overall|in conclusion|in summary|somit|also|因此"
    r"|所以|综上)[^\w\n]*)*",
    re.IGNORECASE,
)
_DESCRIBED = re.compile(r"\W*[A-Z]\s*[:—–-]\s*\S")
_REASON = re.compile(r"[.;,(\n–—]| - |\b(?:because|since|as|due|with|given|for)\b")
_SENTENCE_END = re.compile(r"[.;,!?\n]")
_SCOPE = re.compile(r"\(?[A-HZ]\)? for ([^.;,\n]*)")  # "C for the RV"
_COMPARED = re.compile(r"[ \t]*[<>!±]=?[ \t]*[A-HZ]\b(?![^<\n]*>)")  # "> B"
_LETTERS = re.compile(r"(?:\W*\b[A-HZ]\b)*\W*")
_CAPITAL = re.compile(r"\b[A-HZ]\b")
_MOST_LINES = 30
_SHORTEST_TAIL = 10  # characters of a mark's value and of a statement behind it
_BEGINNING = 80  # characters of a line that decide whether it is an entry


def read_marked_answer(
    plain: str, tokenizer: Tokenizer, *, several: bool, cut: bool, question: str = ""
) -> tuple[str, Reading] | None:
    """The rule and reading of the mark that counts; None if there is none.

    A mark without an option ("ANSWER: <letter>") does not count. In a cut reply only explicit marks count,
    and only if their value is complete.
    """
    reply_marks = marks(plain)
    if cut:
        reply_marks = [mark for mark in reply_marks if mark.rule in EXPLICIT or mark.rule == "withdrawal"]
    return (
        _MarkedAnswer(plain, reply_marks, Values(tokenizer, several), question, cut=cut).last()
        if reply_marks
        else None
    )


class _MarkedAnswer:
    def __init__(
        self,
        plain: str,
        reply_marks: list[Mark],
        values: Values,
        question: str,
        *,
        cut: bool,
    ) -> None:
        self._question = question
        self._plain = plain
        self._marks = reply_marks
        self._tokenizer = values.tokenizer
        self._values = values
        self._several = values.several
        self._cut = cut

    def last(self) -> tuple[str, Reading] | None:
        for at in range(len(self._marks) - 1, -1, -1):
            mark = self._marks[at]
            if mark.rule == "withdrawal":
                continue
            reading = self._reading(at)
            if reading:
                reading = self._alone(at, reading)
                standing = self._standing(at, reading) if reading.readable else reading
                if self._is_of_others(at):
                    return mark.rule, UNREADABLE
                is_denied = standing.readable and (
                    self._is_taken_back(at, reading, standing.keys)
                    or self._is_replaced_in_doubt(at, reading, standing.keys)
                )
                return mark.rule, CONTRADICTION if is_denied else standing
        return None

    def _standing(self, at: int, reading: Reading) -> Reading:
        """The reading that stands at the end, seen from the last mark: what came before and what follows."""
        if at and last_counts(self._plain[self._marks[at].end :]):
            return reading
        if not all(self._is_last(before, at, reading) for before in range(at)):
            return CONTRADICTION
        if not self._cut and is_silent(self._plain[self._marks[at].end :], reading.keys, self._tokenizer):
            return reading
        start = self._after_value(at, reading)
        tail = self._plain[start:]
        if self._cut and (may_go_on(tail) or not self._is_set_off(at)):
            return CONTRADICTION
        if not tail.strip():
            return reading
        line = self._plain.rfind("\n", 0, self._marks[at].start) + 1
        is_provisional = is_draft(self._plain[line : self._marks[at].start])
        return after(
            tail, reading.keys, self._tokenizer, several=self._several, is_provisional=is_provisional
        )

    def _is_of_others(self, at: int) -> bool:
        """Return whether a mark or its value is of something else: "ANSWER (RV): C", "ANSWER: levels A"."""
        mark = self._marks[at]
        if mark.rule not in {"answer_line", "answer_phrase"}:
            return False
        line = self._plain[mark.end : mark.end + _BEGINNING].lstrip()
        topics = Topics.of(self._question)
        scope = _SCOPE.match(line) if " for " in line else None
        if (scope and topics.are_left_by(scope[1])) or _COMPARED.match(self._plain, mark.end):
            return True
        if mark.rule == "answer_phrase":
            return False
        before = _SENTENCE_END.split(self._plain[max(0, mark.start - _BEGINNING) : mark.start])[-1]
        says_more = before.strip() != "" or "(" in self._plain[mark.start : mark.end]
        if says_more and topics.are_left_by(before + self._plain[mark.start : mark.end]):
            return True
        if _LETTERS.fullmatch(line):
            return False
        value = _REASON.split(line, maxsplit=1)[0]
        return _LETTERS.fullmatch(value) is None and (
            topics.are_left_by(value) or topics.is_of_other_places(_CAPITAL.split(value, maxsplit=1)[0])
        )

    def _is_taken_back(self, at: int, reading: Reading, keys: Keys) -> bool:
        """Return whether what follows the value of a mark says the opposite of the answer that stands."""
        tail = self._plain[self._marks[at].end :]
        if len(tail) < _SHORTEST_TAIL:
            return False
        tail = self._plain[self._after_value(at, reading) :]
        return is_taken_back(tail, keys, self._tokenizer, self._question, several=self._several)

    def _is_replaced_in_doubt(self, at: int, reading: Reading, keys: Keys) -> bool:
        """Return whether what follows the value of a mark gives another answer, behind a word not known."""
        if set(keys) <= set(reading.keys):
            return False
        certainty = Certainty(self._question, self._tokenizer.texts, several=self._several)
        tokens = self._tokenizer.tokens(self._plain[self._after_value(at, reading) :])
        return not certainty.introduces(tokens, keys)

    def _is_set_off(self, at: int) -> bool:
        """Return whether an answer line begins its line, but for a word that concludes."""
        mark = self._marks[at]
        before = self._plain[self._plain.rfind("\n", 0, mark.start) + 1 : mark.start]
        return mark.rule != "answer_line" or _OPENING.fullmatch(before) is not None

    def _is_last(self, before: int, at: int, reading: Reading) -> bool:
        """Return whether a mark names no other options than a later one, or stands in order before it."""
        earlier, mark = self._marks[before], self._marks[at]
        if earlier.rule == "withdrawal" or self._are_joined_up(before, at):
            return True
        if (earlier.rule not in EXPLICIT and mark.rule in EXPLICIT) or earlier.rule == mark.rule == "json":
            return True
        earlier_reading = self._reading(before)
        if (
            earlier_reading is None
            or not earlier_reading.readable
            or set(earlier_reading.keys) == set(reading.keys)
        ):
            return True
        line = self._plain.rfind("\n", 0, earlier.start) + 1
        return is_ordered(self._plain[line : earlier.end], self._plain[earlier.end : mark.end])

    def _are_joined_up(self, before: int, at: int) -> bool:
        return all(self._are_joined(first, first + 1) for first in range(before, at))

    def _after_value(self, at: int, reading: Reading) -> int:
        """Where the text after the value of a mark begins."""
        mark = self._marks[at]
        if mark.rule == "json":
            return mark.end
        if mark.rule in {"boxed", "answer_tag"}:
            close = self._plain.find(END, mark.end)
            return len(self._plain) if close < 0 else close + 1
        value_end = self._value_end(at)
        tokens = self._tokenizer.tokens(self._plain[mark.end : value_end])
        end = end_of_list(tokens, self._tokenizer.texts, reading.keys)
        return value_end if end is None else mark.end + end

    def _reading(self, at: int) -> Reading | None:
        mark = self._marks[at]
        if mark.rule == "json":
            return self._values.from_json(mark.value)
        if mark.rule in {"boxed", "answer_tag"}:
            return self._boxed(at)
        text, end = self._value(at)
        if mark.rule == "answer_line":
            reading = self._values.line(text)
            return UNREADABLE if reading and self._is_cut_off(text, end, reading) else reading
        return self._values.phrase(text)

    def _value(self, at: int) -> tuple[str, int]:
        """The lines of a mark's value (the first non-blank one and list entries below), and where it ends."""
        start, end = self._marks[at].end, self._end(at)
        text = self._plain[start:end]
        if at + 1 < len(self._marks) and self._marks[at + 1].rule == "withdrawal":
            text = text.rstrip(" .…")  # "B... no, so A"
        if "<" in text or "[" in text or "|" in text:
            text = _placeholder().sub(" ", text)
        lines, first, last = self._lines_of_value(text)
        return "\n".join(lines[first:last]), end if last >= len(lines) else start

    def _value_end(self, at: int) -> int:
        """Where the lines of a mark's value end."""
        start = self._marks[at].end
        lines, _, last = self._lines_of_value(self._plain[start : self._end(at)])
        return start + len("\n".join(lines[:last]))

    def _lines_of_value(self, text: str) -> tuple[list[str], int, int]:
        """The lines of a text, and the first line of the value in it and the line after its last."""
        lines = text.split("\n", _MOST_LINES)
        first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
        last = first + 1
        for number in range(last, len(lines)):
            if self._describes(lines[number]) and self._is_complete(lines[0]):
                break  # "C: the signal is that of blood" describes an option
            if self._may_be_entry(lines[number], adjacent=lines[number - 1].strip() != ""):
                last = number + 1
            elif lines[number].strip():
                break
        return lines, first, last

    def _is_complete(self, line: str) -> bool:
        """Return whether the line of a mark holds a whole list of letters."""
        return not _DESCRIBED.match(line) and self._is_list(line)

    def _describes(self, line: str) -> bool:
        """Return whether a line says something of an option, and not the option's own text."""
        if not _DESCRIBED.match(line):
            return False
        names = [token for token in self._tokenizer.tokens(line) if token.kind in NAMES]
        return not self._is_list(line) and len({token.key for token in names}) == len(names)

    def _is_list(self, line: str) -> bool:
        reading_and_end = None
        if len(line) <= _BEGINNING:
            tokens = self._tokenizer.tokens(line)
            try:
                reading_and_end = leading(tokens, self._tokenizer.texts, several=True)
            except NotReadableError:
                return False
        return reading_and_end is not None and reading_and_end[1]

    def _may_be_entry(self, line: str, adjacent: bool) -> bool:
        """Return whether a line below an answer begins with an option or, if adjacent, with a bullet."""
        if not line.strip() or line.lstrip().lower().startswith(("the ", "->", "=>", "→", "⇒")):
            return False
        tokens = self._tokenizer.tokens(line[:_BEGINNING])
        if is_another_cause(tokens):
            return False  # "C: the signal is from the blood pool"
        kinds = [token.kind for token in tokens if token.kind not in _BEFORE_ENTRY]
        first = kinds[0] if kinds else None
        if _is_sentence(tokens):
            return False  # "A and B contract well."
        if not adjacent and first in NAMES and "verb" in kinds[1:2]:
            return False  # "(B was considered ...)" after an empty line is a sentence
        return first in NAMES or first == "unsure" or (adjacent and _BULLET.match(line) is not None)

    def _end(self, at: int) -> int:
        """The last possible end of a mark's value: the next mark or the end of its box."""
        following = self._marks[at + 1].start if at + 1 < len(self._marks) else len(self._plain)
        box = self._plain.find(END, self._marks[at].end, following)
        doubted = doubt_on_line(self._plain, self._marks[at].end, following)
        return min(end for end in (following, box, doubted) if end >= 0)

    def _is_cut_off(self, text: str, end: int, reading: Reading) -> bool:
        """Return whether the token limit may have cut off part of a list or text that ends with the reply."""
        if not self._cut or end < len(self._plain):
            return False
        kinds = {token.kind for token in self._tokenizer.tokens(text)}
        return self._several or "key" not in kinds or not reading.readable

    def _boxed(self, at: int) -> Reading | None:
        """Read the content of a box or tag; adjacent boxes form one list."""
        first = at
        while first and self._are_joined(first - 1, first):
            first -= 1
        start, close = self._marks[first].end, self._plain.find(END, self._marks[at].end)
        if close < 0 and self._cut:
            return UNREADABLE
        inner = self._plain[start : close if close >= 0 else len(self._plain)]
        return UNREADABLE if close >= 0 and self._continues(close) else self._values.line(inner)

    def _are_joined(self, before: int, after: int) -> bool:
        """Return whether only conjunctions separate two boxes."""
        if self._marks[before].rule != self._marks[after].rule:
            return False
        close = self._plain.find(END, self._marks[before].end, self._marks[after].start)
        if close < 0:
            return False
        between = self._tokenizer.tokens(self._plain[close + 1 : self._marks[after].start])
        return all(token.kind in _JOINS | {"label"} for token in between)

    def _continues(self, close: int) -> bool:
        """Return whether a list that began in a box continues after it."""
        line = self._plain[close + 1 :].partition("\n")[0]
        tokens = [token for token in self._tokenizer.tokens(line) if token.kind != "label"]
        kinds = [token.kind for token in tokens[:2]]
        return len(kinds) == 2 and kinds[0] in _JOINS and kinds[1] in {"key", "text", "short", "unsure"}

    def _alone(self, at: int, reading: Reading) -> Reading:
        """The reading, or UNREADABLE if the mark just before names other options: each may be a part."""
        if not self._several or not at or self._marks[at - 1].rule != self._marks[at].rule:
            return reading
        between = self._plain[self._marks[at - 1].end : self._marks[at].start]
        if self._marks[at].rule != "boxed" and "\n" in between.strip():
            return reading
        before = self._reading(at - 1)
        return reading if before is None or set(before.keys) <= set(reading.keys) else UNREADABLE


def _is_sentence(tokens: list[Token]) -> bool:
    """Return whether letters, and nothing between, stand before a word of no option."""
    letters = [at for at, token in enumerate(tokens) if token.kind == "key" and token.text.isupper()]
    if not letters or letters[0] > 0:
        return False
    at = next((at for at, token in enumerate(tokens) if token.kind not in _WITHIN_LETTERS), len(tokens))
    return at < len(tokens) and tokens[at].kind == "word" and tokens[at].text.isalpha() and len(letters) > 1


@functools.cache
def _placeholder() -> re.Pattern[str]:
    return re.compile("|".join(words().placeholders), re.IGNORECASE)
