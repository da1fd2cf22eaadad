"""What a reply says after its answer, and whether the answer still stands (protocol 17.16)."""

import functools
import re
from collections.abc import Sequence
from dataclasses import replace

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.answer_marks import ASKED_AND_DENIED
from cardiolens.score.verdicts.commitments import Remark, order, provisional, said_of_options
from cardiolens.score.verdicts.option_text import LATIN
from cardiolens.score.verdicts.reading import CONTRADICTION, Keys, Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import Clause, clauses
from cardiolens.score.verdicts.reply_tokens import Tokenizer

_DENIED_QUESTION = re.compile(rf"(?:\A|(?<=[\n.!?;])){ASKED_AND_DENIED.pattern}(?=\s|\Z)", re.IGNORECASE)
_AFFIRMED_QUESTION = re.compile(r"([^\n.!?;]*)\?\s*(?:yes|indeed|ja)\b", re.IGNORECASE)
_WRONG = re.compile(
    r"(?<![A-Za-z0-9])([A-Z])(?: \([^()\n]*\))? (?:is|was)(?:n't| not)? ?"
    r"(?:wrong|incorrect|right|correct|an? (?:error|mistake))\b"
)
_LAST_COUNTS = re.compile(
    r"\b(?:second|last|latter)\b(?: \w+){0,3}? (?:is|was|counts|stands|holds)\b(?! (?:not|wrong))"
    r"(?:[^.\n]*\b(?:final|correct(?:ed)?|valid|right|mine|meant)\b)?"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]?")
_CAPITAL = re.compile(r"(?<![A-Za-z0-9])[A-HJ-Z](?![A-Za-z0-9'])")  # of an option; "I" is a pronoun
_LETTERS_ALONE = re.compile(r"[\s,.;&()/]*(?:[A-Za-z][\s,.;&()/]+)*[A-Za-z]?")
_FIRST_WORD = re.compile(r"[^\W\d_]+")


def after(
    text: str, keys: Keys, tokenizer: Tokenizer, *, several: bool, is_provisional: bool = False
) -> Reading:
    """The reading that stands at the end of a text that follows an answer of `keys`.

    The last commitment counts if a second thought or a word of order comes before it, or if the answer was
    `is_provisional`. CONTRADICTION where an
    answer is put in doubt and not confirmed, and where two stand without order.
    """
    text = _without_denied_questions(_without_courtesies(text), keys)
    if is_silent(text, keys, tokenizer):
        return reading_of(list(keys))
    if _names_others(" ".join(_AFFIRMED_QUESTION.findall(text)), keys, tokenizer):
        return CONTRADICTION
    lower = text.lower()
    doubts = [match.start() for match in doubt().finditer(lower)]
    comes_down = _conclusion().search(lower) is not None
    answer = _Answer(keys, several)
    position = 0
    adds = several and _addition().search(lower) is not None
    if adds and any(_adds_no_option(clause, tokenizer) for clause in clauses(tokenizer.tokens(text))):
        return CONTRADICTION
    for remark in said_of_options(text, tokenizer, texts=bool(doubts) or comes_down or adds):
        answer.is_open |= any(position <= start < remark.end for start in doubts)
        position = remark.end
        clause = lower[remark.start : remark.end]
        answer.take_in(
            remark,
            is_doubted=any(start < remark.end for start in doubts) and _alternative().search(clause) is None,
            is_ordered=is_provisional or order().search(clause) is not None,
            is_confirmed=_confirmation().search(clause) is not None,
        )
    answer.is_open |= any(start >= position for start in doubts)
    if answer.keys == keys and any(
        match.end() > max(doubts, default=-1) for match in _confirmation().finditer(lower)
    ):
        answer.is_open = False
    return CONTRADICTION if answer.is_open else reading_of(list(answer.keys))


def _adds_no_option(clause: Clause, tokenizer: Tokenizer) -> bool:
    """Return whether a clause adds a letter that no option has: "Also F"."""
    letters = {token.key for token in clause if token.kind == "key" and token.text.isupper()}
    return any(token.kind == "also" for token in clause) and not letters <= tokenizer.texts.keys


def _without_courtesies(text: str) -> str:
    """Blank the sentences to the reader that name no option: "Let me know if I should re-check."."""
    lower = text.lower()
    if not _courtesy().search(lower):
        return text
    return _SENTENCE.sub(
        lambda sentence: (
            " " * len(sentence[0])
            if _courtesy().search(sentence[0].lower()) and not _CAPITAL.search(sentence[0])
            else sentence[0]
        ),
        text,
    )


def _without_denied_questions(text: str, keys: Keys) -> str:
    """Blank the questions that a reply asks itself and answers with no, but for those of its own answer."""
    if "?" not in text:
        return text
    own_letters = _letters("".join(keys))
    return _DENIED_QUESTION.sub(
        lambda question: question[0] if own_letters.search(question[0]) else " " * len(question[0]), text
    )


@functools.cache
def _courtesy() -> re.Pattern[str]:
    return _any(words().second_thoughts.courtesies)


def _is_letters(text: str) -> bool:
    """Return whether a text holds letters of options at most, and no words."""
    return (text.isupper() or not text.strip()) and text.isascii() and ">" not in text


def is_silent(text: str, keys: Keys, tokenizer: Tokenizer) -> bool:
    """Return whether a text neither doubts an answer of `keys` nor speaks of another; most do not."""
    if _names_others(text, keys, tokenizer):
        return False
    lower = text.lower()
    if _LETTERS_ALONE.fullmatch(text):
        return True
    if _is_taken_back(text, keys):
        return False
    return not (_conclusion().search(lower) or doubt().search(lower) or _addition().search(lower))


def _is_taken_back(text: str, keys: Keys) -> bool:
    """Return whether a text says that an option of the answer is wrong: "B is wrong"."""
    return any(match[1] in keys for match in _WRONG.finditer(text))


class _Answer:
    """The answer of a reply while the text after it is read."""

    def __init__(self, keys: Keys, several: bool) -> None:
        self.keys = keys
        self.is_open = False  # put in doubt, and not confirmed or replaced
        self._several = several

    def take_in(self, remark: Remark, *, is_doubted: bool, is_ordered: bool, is_confirmed: bool) -> None:
        """Take in what one clause says of options."""
        is_own = set(remark.keys) <= set(self.keys)
        if remark.stance in {"adds", "removes"}:
            self._edit(remark)
            return
        if remark.is_added and not remark.by_letter and not is_own and remark.stance != "denies":
            self.is_open = True  # "A. Normal, but also thinned."
            return
        if remark.stance == "commits" and (self._several or len(remark.keys) == 1):
            self._commit(remark, is_last=is_doubted or is_ordered)
        elif is_own and is_doubted and self._several and remark.by_letter and remark.stance == "denies":
            self._edit(replace(remark, stance="removes"))  # "Sorry, not C"
        elif is_own and is_doubted and self._several and set(remark.keys) != set(self.keys):
            self.is_open = True  # a part of the answer, kept or withdrawn
        elif is_own:
            self.is_open = remark.stance == "denies" or (
                self.is_open and remark.stance in {"hedges", "explains"}
            )
        elif remark.stance != "denies" and not is_confirmed:
            speaks_against = remark.by_letter and remark.stance in {"affirms", "commits", "rivals"}
            is_further = (remark.is_added and (self._several or remark.by_letter)) or (
                self._several and remark.is_suspected
            )
            self.is_open |= is_doubted or speaks_against or is_further

    def _edit(self, remark: Remark) -> None:
        """Add options to the answer, or take them away; an answer of one option is at most exchanged."""
        if remark.stance == "adds" and set(remark.keys) <= set(self.keys):
            return
        if remark.stance == "removes" and not set(remark.keys) & set(self.keys):
            return
        if remark.stance == "adds":
            keys = (*self.keys, *(key for key in remark.keys if key not in self.keys))
        else:
            keys = tuple(key for key in self.keys if key not in remark.keys)
        if not self._several and self.is_open and remark.stance == "adds" and len(remark.keys) == 1:
            self.keys, self.is_open = remark.keys, False
            return
        self.is_open = not (self._several and keys)
        self.keys = keys if self._several and keys else self.keys

    def _commit(self, remark: Remark, *, is_last: bool) -> None:
        if set(remark.keys) == set(self.keys):
            self.is_open = False
        elif is_last and (remark.by_letter or (remark.is_alone and not self._several)):
            self.keys, self.is_open = remark.keys, False
        elif remark.by_letter or is_last or (remark.is_alone and not self._several):
            self.is_open = True


def is_draft(before: str) -> bool:
    """Return whether the line of an answer up to it says that it is not the last: "Preliminary answer"."""
    return provisional().search(before.lower()) is not None


def is_ordered(before: str, between: str) -> bool:
    """Return whether the second of two answers is the last word.

    `before` is the line of the first up to it; `between` is the text from the first to the second.
    """
    return (
        is_draft(before)
        or order().search(between.lower()) is not None
        or doubt().search(between.lower()) is not None
    )


def last_counts(tail: str) -> bool:
    """Return whether the text after two answers calls the second one valid: "(the second line is final)"."""
    return _LAST_COUNTS.search(tail.lower()) is not None


def doubt_on_line(plain: str, start: int, end: int) -> int:
    """Where a second thought begins on the line of an answer at `start`, after its first letters; else -1."""
    line_end = plain.find("\n", start, end)
    line = plain[start : line_end if line_end >= 0 else end]
    match = None if _is_letters(line) else doubt().search(line.lower())
    if match is None or not line[: match.start()].strip(" .:*"):
        return -1
    return start + len(line[: match.start()].rstrip(" .…"))


def may_go_on(tail: str) -> bool:
    """Return whether the end of a cut reply opens a thought that the cut may have left unfinished."""
    lower = tail.lower()
    first = _FIRST_WORD.search(lower)
    if first and first[0] in words().second_thoughts.interjections:
        return True
    return doubt().search(lower) is not None or _contrast().search(lower) is not None


def _names_others(text: str, keys: Keys, tokenizer: Tokenizer) -> bool:
    others = "".join(sorted(tokenizer.texts.keys - set(keys)))
    return bool(others) and _letters(others).search(text) is not None


@functools.lru_cache(maxsize=256)
def _letters(letters: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9])[{re.escape(letters)}](?![A-Za-z0-9'])")


@functools.cache
def doubt() -> re.Pattern[str]:
    """Pattern of a second thought, in lower case."""
    return _any(words().second_thoughts.doubts)


@functools.cache
def _confirmation() -> re.Pattern[str]:
    return _any(words().second_thoughts.reaffirms)


@functools.cache
def _alternative() -> re.Pattern[str]:
    return _any(words().second_thoughts.alternatives)


@functools.cache
def _conclusion() -> re.Pattern[str]:
    """Pattern of a word that begins what a reply comes down to."""
    conclusions = "|".join(re.escape(word) for word in words().conclusions if word != "so")
    return re.compile(rf"(?:^|[\n.(;])[^\w\n]*(?:{conclusions})(?![{LATIN}])")


@functools.cache
def _addition() -> re.Pattern[str]:
    """Pattern of a word that adds to what was said, in lower case."""
    entries = "|".join(re.escape(word) for word in words().words["also"])
    return re.compile(rf"(?<![{LATIN}])(?:{entries})(?![{LATIN}])")


@functools.cache
def _contrast() -> re.Pattern[str]:
    return _any(words().second_thoughts.contrasts)


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns))
