"""Parse a reply to a choice question to the options it names (protocol 7.6, 16.1, 16.2)."""

import functools
import re
from dataclasses import dataclass
from typing import Literal

from cardiolens.score.verdicts.answer_marks import EXPLICIT
from cardiolens.score.verdicts.certainty import Certainty
from cardiolens.score.verdicts.first_line import without_reasons
from cardiolens.score.verdicts.headings import blocks_of, two_lists
from cardiolens.score.verdicts.likelihoods import likeliest
from cardiolens.score.verdicts.marked_answer import read_marked_answer
from cardiolens.score.verdicts.option_text import Option
from cardiolens.score.verdicts.reading import UNREADABLE, Reading
from cardiolens.score.verdicts.reply import answer_at_end, refuses, visible_with_boxes
from cardiolens.score.verdicts.reply_tokens import Tokenizer, reversing_word
from cardiolens.score.verdicts.rewording import reworded
from cardiolens.score.verdicts.several_questions import own_part
from cardiolens.score.verdicts.unmarked_answer import read_unmarked_answer

# Version of the rules of the protocol's section 16. Raise it with every change that may parse a reply
# differently.
RULES_VERSION = "1.9"

_JSON_NAME = re.compile(r"(?<=[a-z])_(?=[a-z])")
_OF_STATEMENTS = frozenset({"enumeration", "option_text"})
_SHORT = 60  # characters

ParseStatus = Literal["ok", "inconsistent", "parse_error", "refusal", "truncated"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """The options in a reply (displayed keys in the options' order), and the rule that matched.

    Rules are answer_line, json, boxed, answer_tag, answer_phrase, heading, letters, last_line, enumeration,
    option_text and none.
    """

    keys: tuple[str, ...]
    rule: str
    status: ParseStatus


def parse_answer(
    text: str,
    options: tuple[Option, ...],
    answer_type: str,
    exclusive: tuple[str, ...] = (),
    *,
    cut: bool = False,
    question: str = "",
    code: str = "",
) -> Parsed:
    """Parse the last mark of a reply that is not withdrawn; without marks, the reply itself.

    `question` is its wording, which tells what a finding in prose is said of, and `code` that of its subtask
    ("C10"), by which a reply may sort its answers to several questions. `options` are (key, text) as
    displayed and `exclusive` displayed keys. What cannot be read completely,
    letters outside the options, and several for a question that takes one are a parse_error. A reply that was
    `cut` by its token limit is read by an explicit mark only and is otherwise `truncated`.
    """
    parse = _parse_short if len(text) <= _SHORT else _parse
    return parse(text, _DisplayedQuestion(options, answer_type, exclusive, question, code), cut)


@dataclass(frozen=True, slots=True)
class _DisplayedQuestion:
    """A question as displayed."""

    options: tuple[Option, ...]
    answer_type: str
    exclusive: tuple[str, ...]
    question: str
    code: str


def _parse(text: str, question_shown: _DisplayedQuestion, cut: bool) -> Parsed:
    visible_text = visible_with_boxes(text) or ("" if cut else visible_with_boxes(answer_at_end(text)))
    visible_text = without_reasons(visible_text)
    tokenizer = Tokenizer.of(question_shown.options, reversing_word(question_shown.question))
    plain = own_part(visible_text, question_shown.question, question_shown.code, tokenizer.texts)
    plain = reworded(plain, question_shown.options, question_shown.question)
    if "{" in plain:
        plain = _JSON_NAME.sub(" ", plain)  # "mid_wall" is an option's text
    several = question_shown.answer_type == "multi"
    blocks = blocks_of(plain, tokenizer)
    rule, reading = read_marked_answer(
        blocks.text, tokenizer, several=several, cut=cut, question=question_shown.question
    ) or ("none", None)
    is_marked = reading is not None
    if rule == "answer_phrase" and not several and plain.count("%") > 1:
        reading = likeliest(tokenizer.tokens(plain), tokenizer.texts) or reading
    if reading is None and not cut:
        of_headings = blocks.reading or (two_lists(plain, tokenizer) if several else None)
        rule, reading = (
            ("heading", of_headings)
            if of_headings
            else (
                read_unmarked_answer(
                    blocks.text, tokenizer, several=several, question=question_shown.question
                )
                or ("none", None)
            )
        )
    if reading is None and not several and not cut:
        rule, reading = "heading", blocks.left_over(tokenizer)
    if reading:
        reading = blocks.check(reading)
    if reading and reading.readable and rule not in EXPLICIT:
        certainty = Certainty(question_shown.question, tokenizer.texts, several=several)
        if not certainty.holds(tokenizer.tokens(plain), reading.keys, rule, is_marked=is_marked):
            reading = UNREADABLE
    if reading and reading.contradicts and not cut:
        return Parsed((), rule, "inconsistent")
    if reading is None or not reading.readable:
        return Parsed((), _rule_of(rule, reading), _unread(plain, rule, reading, cut))
    parsed = _checked(reading.keys, rule, question_shown.options, several, question_shown.exclusive)
    return Parsed((), rule, "truncated") if cut and not parsed.keys else parsed


# Short replies such as "ANSWER: B" repeat and are worth caching; paragraphs do not.
_parse_short = functools.lru_cache(maxsize=1 << 16)(_parse)


def _rule_of(rule: str, reading: Reading | None) -> str:
    return rule if reading and reading.names_options else "none"


def _unread(plain: str, rule: str, reading: Reading | None, cut: bool) -> ParseStatus:
    if cut:
        return "truncated"
    names_options = (
        reading is not None and reading.names_options and rule not in {"option_text", "enumeration"}
    )
    return "refusal" if not names_options and refuses(plain) else "parse_error"


def _checked(
    keys: tuple[str, ...], rule: str, options: tuple[Option, ...], several: bool, exclusive: tuple[str, ...]
) -> Parsed:
    legal = tuple(key for key, _ in options if key in keys)
    if len(legal) != len(keys) or (len(keys) > 1 and not several):
        return Parsed((), rule, "parse_error")
    contradictory = len(legal) > 1 and not set(legal).isdisjoint(exclusive)
    if contradictory and rule in _OF_STATEMENTS:
        return Parsed((), rule, "inconsistent")  # two statements, and not a list that is kept as given
    return Parsed(legal, rule, "inconsistent" if contradictory else "ok")
