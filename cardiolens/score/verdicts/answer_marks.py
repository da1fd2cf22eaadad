"""Answer marks in a reply: answer lines, JSON, boxes, tags, phrases, and withdrawals of these."""

import functools
import re
from dataclasses import dataclass
from typing import Literal

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.json_reply import answers
from cardiolens.score.verdicts.option_text import LATIN
from cardiolens.score.verdicts.reply import BOX, END, TAG

Rule = Literal["answer_line", "json", "boxed", "answer_tag", "answer_phrase", "withdrawal"]
EXPLICIT = frozenset({"answer_line", "json", "boxed", "answer_tag"})  # all that count in a cut reply

_BOXES: dict[str, Rule] = {BOX: "boxed", TAG: "answer_tag"}


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a reply that introduces its answer."""

    rule: Rule
    start: int
    end: int  # where its value begins; of JSON, where its object ends
    value: object = None  # of JSON


def marks(plain: str) -> list[Mark]:
    """Find the marks of a visible reply in order; a JSON answer replaces the marks inside it."""
    lower = to_lower_case(plain)
    marks_in_order = _introduced(lower)
    if BOX in plain or TAG in plain:
        marks_in_order += [
            Mark(_BOXES[sign[0]], sign.start(), sign.end()) for sign in _BOX_SIGN.finditer(plain)
        ]
    if "{" in plain:
        marks_in_order = _with_json(marks_in_order, plain)
    if marks_in_order:
        marks_in_order += [
            Mark("withdrawal", match.start(1), match.end())
            for match in _withdrawal().finditer(lower, marks_in_order[0].start)
            if not ASKED_AND_DENIED.fullmatch(lower, _line_of(lower, match.start(1)), match.end(1))
        ]
        marks_in_order.sort(key=lambda mark: (mark.start, mark.end))
    return marks_in_order


def _line_of(text: str, position: int) -> int:
    """Where the sentence before a position begins that ends with a question mark; else the position."""
    end = len(text[:position].rstrip())
    if text[end - 1 : end] != "?":
        return position
    return 1 + max(text.rfind(sign, 0, end - 1) for sign in "\n.!?;")


def _introduced(lower: str) -> list[Mark]:
    stems, longer = _stems(ascii_only=lower.isascii())
    present_stems = [stem for stem in stems if stem in lower]
    present_stems += [stem for stem, within in longer if within in present_stems and stem in lower]
    present = frozenset(present_stems)
    if not present:
        return []
    matches = _introductions(present).finditer(lower)
    introductions = [_mark(match) for match in matches if _stands_alone(lower, match)]
    introductions = [
        mark
        for mark in introductions
        if _begins_line(lower, mark.start)
        or not (_is_of_others(lower, mark.start) or _is_conditional(lower, mark.start))
    ]
    introductions = [mark for mark in introductions if not _is_unreal(lower, mark)]
    return [
        mark for mark in introductions if mark.rule != "answer_phrase" or not _is_supposed(lower, mark.start)
    ]


def _begins_line(lower: str, position: int) -> bool:
    return position == 0 or lower[position - 1] == "\n"


def _is_of_others(lower: str, position: int) -> bool:
    """Return whether an answer is somebody else's or a wrong one ("your answer: A")."""
    return _others().search(lower[max(0, position - 20) : position]) is not None


def _is_conditional(lower: str, position: int) -> bool:
    """Return whether an answer stands under a condition ("if it moved, ANSWER: A")."""
    before = lower[max(0, position - 200) : position]
    return _condition().search(_SENTENCE_END.split(before)[-1]) is not None


def _is_unreal(lower: str, mark: Mark) -> bool:
    """Return whether an answer "would be" another if its sentence's condition held."""
    if not _UNREAL.search(lower, mark.start, mark.end):
        return False
    return _condition().search(_SENTENCE_END.split(lower[mark.end : mark.end + 200])[0]) is not None


@functools.cache
def _condition() -> re.Pattern[str]:
    return re.compile("|".join(words().conditions))


@functools.cache
def _others() -> re.Pattern[str]:
    return re.compile("|".join(words().others_answers))


def _is_supposed(lower: str, position: int) -> bool:
    """Return whether a phrase is conditional or doubtful ("if it moved, the answer would be A")."""
    before = lower[max(0, position - 200) : position]
    return _supposition().search(_SENTENCE_END.split(before)[-1]) is not None


@functools.cache
def _supposition() -> re.Pattern[str]:
    return re.compile("|".join(words().suppositions))


@functools.cache
def _stems(ascii_only: bool) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The stems that hold no other one, and those that do, each with the one that it holds."""
    stems = [
        stem
        for stem in dict.fromkeys([*words().answer_nouns, *words().choosing])
        if stem.isascii() or not ascii_only
    ]
    within = {
        stem: min((shorter for shorter in stems if shorter != stem and shorter in stem), key=len, default="")
        for stem in stems
    }
    shortest = tuple(stem for stem in stems if not within[stem])
    return shortest, tuple((stem, within[stem]) for stem in stems if within[stem])


def to_lower_case(plain: str) -> str:
    """Lower the case of a text without changing its length, so that positions stay valid."""
    lower = plain.lower()
    return lower if len(lower) == len(plain) else "".join(letter.lower()[:1] for letter in plain)


def _with_json(marks: list[Mark], plain: str) -> list[Mark]:
    for answer in answers(plain):
        marks = [mark for mark in marks if not answer.start <= mark.start < answer.end]
        marks.append(Mark("json", answer.start, answer.end, answer.value))
    return marks


ASKED_AND_DENIED = re.compile(
    r"\s*(?:(?:could|is|are|might|may|should|would|does|do|can|was)\b[^\n.!?;]*|[A-HZ])\?\s*(?:no|nope|nein)\b[.!]?",
    re.IGNORECASE,
)
"""A question that a reply asks itself and answers with no."""

_UNREAL = re.compile(r"would|could|wäre")
_CHINESE_NOT = frozenset("不未没非勿别")
_SENTENCE_END = re.compile(r"[.!?;。\n]")
_BOX_SIGN = re.compile(f"[{BOX}{TAG}]")


@functools.lru_cache(maxsize=1024)
def _introductions(present: frozenset[str]) -> re.Pattern[str]:
    """Pattern of answer nouns with their continuation, and of phrases of choice, for the present stems."""
    nouns = "|".join(
        noun for stem, nouns in words().answer_nouns.items() if stem in present for noun in nouns
    )
    choices = "|".join(
        phrase for stem, phrases in words().choosing.items() if stem in present for phrase in phrases
    )
    verbs = "|".join(words().answer_verbs)
    remark = r"(?:\(s\))?(?:[ \t]*\([^()\n]{0,40}\))?[ \t]*"  # "Answer(s):", "Answer (letters only):"
    letter = r"(?<=[ \t])(?=\(?[a-z]\)?(?:[.,;:)]|[ \t]*(?:\n|$)|[ \t]+(?:and|&)[ \t]))"  # "Answer B"
    introduced = (
        rf"(?:{nouns}){remark}"
        r"(?:(?P<line>[:=]>?|>|】|[-–—]>|[→⇒]|[-–—](?=[ \t]))"
        rf"|(?:{verbs})\s*(?P<late>:)?|(?=\n)|{letter})"
    )
    return re.compile("|".join([introduced] * bool(nouns) + [choices] * bool(choices)))


def _mark(match: re.Match[str]) -> Mark:
    groups = match.groupdict()
    explicit = groups.get("line") is not None or groups.get("late") is not None
    return Mark("answer_line" if explicit else "answer_phrase", match.start(), match.end())


def _stands_alone(lower: str, match: re.Match[str]) -> bool:
    """Return whether a match begins at a word boundary, and not after a Chinese "not"."""
    before = lower[match.start() - 1 : match.start()]
    return before not in _CHINESE_NOT and not (before and before.isascii() and before.isalnum())


@functools.cache
def _withdrawal() -> re.Pattern[str]:
    """Pattern of withdrawals of an answer, at the start of a sentence, a line or a bracket."""
    phrases = "|".join(re.escape(entry) for entry in words().withdrawals)
    return re.compile(
        rf"(?:[.!?\n;(。？，,]|(?<![^a-z][a-h] )[-–—{END}])[ \t]*((?:{phrases})(?![{LATIN}]))[,.:; \t—–-]*"
    )
