"""One reply to a choice question as the options it names (protocol 7.6)."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cardiolens.judging import letters
from cardiolens.judging.json_reply import objects
from cardiolens.judging.option_text import OptionTexts
from cardiolens.judging.reply import refuses, visible, words

Option = tuple[str, str]
Named = tuple[str, ...]
ParseStatus = Literal["ok", "inconsistent", "parse_error", "refusal"]

_BULLET = re.compile(r"^\s*[-•]\s+")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply names: displayed keys in the order of the options, and the rule that found them."""

    keys: tuple[str, ...]
    rule: str  # answer_line | json | letters | answer_phrase | option_text | none
    status: ParseStatus


def parse_answer(
    text: str, options: tuple[Option, ...], answer_type: str, exclusive: tuple[str, ...] = ()
) -> Parsed:
    """Read a reply by the rules of 7.6 in their order; the first rule that finds letters or texts decides.

    `options` are (key, text) as displayed and `exclusive` displayed keys. Letters outside the options, or
    several for a question that takes one, are a parse_error, not a reason to try the next rule. Beyond 7.6,
    "the answer is B" counts (rule `answer_phrase`).
    """
    plain = visible(text)
    texts = OptionTexts.of(options)
    for rule, find in _RULES.items():
        named = find(plain, texts)
        if named:
            return _checked(named, rule, options, answer_type, exclusive)
    return Parsed((), "none", "refusal" if refuses(plain) else "parse_error")


def _checked(
    named: tuple[str, ...],
    rule: str,
    options: tuple[Option, ...],
    answer_type: str,
    exclusive: tuple[str, ...],
) -> Parsed:
    legal = tuple(key for key, _ in options if key in named)
    if len(legal) != len(named) or (answer_type != "multi" and len(named) > 1):
        return Parsed((), rule, "parse_error")
    contradictory = len(legal) > 1 and not set(legal).isdisjoint(exclusive)
    return Parsed(legal, rule, "inconsistent" if contradictory else "ok")


@functools.cache
def _answer_mark() -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(words().answer_words)})\s*[:=]", re.IGNORECASE)


@functools.cache
def _answer_phrase() -> re.Pattern[str]:
    nouns, verbs = "|".join(words().answer_words), "|".join(words().answer_verbs)
    choosing = "|".join(words().choosing)
    return re.compile(
        rf"(?<![A-Za-z])(?:(?:{nouns})\s*(?:(?:{verbs})\s*:?|(?=\n))|(?:{choosing}))", re.IGNORECASE
    )


def _last_after(mark: re.Pattern[str], plain: str, texts: OptionTexts) -> Named:
    """Letters after the last mark that is followed by letters."""
    for found in reversed(list(mark.finditer(plain))):
        run = letters.leading(texts.masked(_line_after(plain, found.end())))
        if run:
            return run.letters
    return ()


def _line_after(plain: str, position: int) -> str:
    """The rest of a line; if that is blank, the lines below it up to the next blank one, as one list."""
    line, _, below = plain[position:].partition("\n")
    if line.strip():
        return line
    paragraph = re.split(r"\n\s*\n", below.strip(), maxsplit=1)[0]
    return ", ".join(_BULLET.sub("", entry) for entry in paragraph.split("\n"))


def _answer_line(plain: str, texts: OptionTexts) -> Named:
    return _last_after(_answer_mark(), plain, texts)


def _phrase(plain: str, texts: OptionTexts) -> Named:
    return _last_after(_answer_phrase(), plain, texts)


def _json(plain: str, texts: OptionTexts) -> Named:
    """Letters or option texts under the key `answer` of the last JSON object that has one."""
    named = [_from_json(value, texts) for value in objects(plain)]
    return next((found for found in reversed(named) if found), ())


def _from_json(value: dict[str, object], texts: OptionTexts) -> Named:
    answers = [given for key, given in value.items() if key.lower() == "answer"]
    given = answers[-1] if answers else None
    entries = given if isinstance(given, list) else [given]
    found = [_entry(entry, texts) for entry in entries if isinstance(entry, str)]
    return tuple(dict.fromkeys(key for keys in found for key in keys))


def _entry(entry: str, texts: OptionTexts) -> Named:
    run = letters.leading(texts.masked(entry))
    return run.letters if run else texts.whole(entry)


def _letters_only(plain: str, texts: OptionTexts) -> Named:
    run = letters.leading(texts.masked(texts.without_listing(plain)))
    return run.letters if run and run.alone else ()


def _option_text(plain: str, texts: OptionTexts) -> Named:
    return texts.quoted(texts.without_listing(plain))


_RULES: dict[str, Callable[[str, OptionTexts], Named]] = {
    "answer_line": _answer_line,
    "json": _json,
    "letters": _letters_only,
    "answer_phrase": _phrase,
    "option_text": _option_text,
}
