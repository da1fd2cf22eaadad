"""One reply to a choice question as the options it names (protocol 7.6, 16.1, 16.2)."""

import re
from dataclasses import dataclass
from typing import Literal

from cardiolens.judging.clauses import Statement, clauses, others_named, statements
from cardiolens.judging.enumerations import closing_letters, enumeration, is_one_sentence, prose
from cardiolens.judging.lists import leading
from cardiolens.judging.marked import marked
from cardiolens.judging.option_text import Option
from cardiolens.judging.reading import UNREADABLE, NotReadableError, Reading
from cardiolens.judging.reply import refuses, visible_with_boxes
from cardiolens.judging.tokens import Token, Tokenizer

RULES_VERSION = (
    "1.2"  # of the protocol's section 16; raise it with every change that may read a reply otherwise
)

ParseStatus = Literal["ok", "inconsistent", "parse_error", "refusal", "truncated"]
Found = tuple[str, Reading]

_SETS_OFF = frozenset({"stop", "close", "colon", "dash", "newline", "comma", "semicolon", "open", "reason"})
_LISTS_OPTIONS = re.compile(r"(?:options?|choices?|选项)[^\n]*:\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply names: displayed keys in the order of the options, and the rule that found them.

    Rules are answer_line, json, boxed, answer_tag, answer_phrase, letters, last_line, enumeration,
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
) -> Parsed:
    """Read the last mark of a reply that is not withdrawn; without any, the reply itself.

    `options` are (key, text) as displayed and `exclusive` displayed keys. What cannot be read completely,
    letters outside the options, and several for a question that takes one are a parse_error. A reply that was
    `cut` by its token limit is read by an explicit mark only and is otherwise `truncated`.
    """
    plain = visible_with_boxes(text)
    tokenizer = Tokenizer.of(options)
    several = answer_type == "multi"
    rule, reading = marked(plain, tokenizer, several=several, cut=cut) or ("none", None)
    if reading is None and not cut:
        rule, reading = _unmarked(plain, tokenizer, several)
    if reading is None or not reading.readable:
        return Parsed((), _rule_of(rule, reading), _unread(plain, rule, reading, cut))
    parsed = _checked(reading.keys, rule, options, several, exclusive)
    return Parsed((), rule, "truncated") if cut and not parsed.keys else parsed


def _rule_of(rule: str, reading: Reading | None) -> str:
    return rule if reading and reading.names_options else "none"


def _unread(plain: str, rule: str, reading: Reading | None, cut: bool) -> ParseStatus:
    if cut:
        return "truncated"
    stated = reading is not None and reading.names_options and rule not in {"option_text", "enumeration"}
    return "refusal" if not stated and refuses(plain) else "parse_error"


def _checked(
    named: tuple[str, ...], rule: str, options: tuple[Option, ...], several: bool, exclusive: tuple[str, ...]
) -> Parsed:
    legal = tuple(key for key, _ in options if key in named)
    if len(legal) != len(named) or (len(named) > 1 and not several):
        return Parsed((), rule, "parse_error")
    contradictory = len(legal) > 1 and not set(legal).isdisjoint(exclusive)
    return Parsed(legal, rule, "inconsistent" if contradictory else "ok")


def _unmarked(plain: str, tokenizer: Tokenizer, several: bool) -> tuple[str, Reading | None]:
    """A reply without marks by the rules of 7.6 in their order; the first that finds options decides."""
    said = tokenizer.texts.without_listing(plain).strip()
    tokens = tokenizer.tokens(said)
    listed = None if _LISTS_OPTIONS.search(said.partition("\n")[0]) else _list_only(said, tokens, tokenizer)
    if listed and listed[1].readable:
        return listed
    stated = statements(tokens)
    return (
        _last_lines(said, tokenizer)
        or _found("enumeration", enumeration(stated))
        or _found("answer_phrase", closing_letters(tokens, tokenizer.texts))
        or (listed if listed and "\n" not in said else None)
        or _found("option_text", _quoted(tokens, stated, several))
        or ("none", None)
    )


def _found(rule: str, reading: Reading | None) -> Found | None:
    return (rule, reading) if reading else None


def _list_only(said: str, tokens: list[Token], tokenizer: Tokenizer) -> Found | None:
    """A reply that is a list, or begins with letters and goes on to explain them."""
    kinds = {token.kind for token in tokens}
    rule = "option_text" if "key" not in kinds and kinds & {"text", "short"} else "letters"
    try:
        found = leading(tokens, tokenizer.texts, several=True)
    except NotReadableError:
        return rule, UNREADABLE
    if not found or not (found[1] or _opens_with_letters(tokens, found[0])):
        return None
    return (rule, found[0]) if _deliberate(said, tokens) else None


def _opens_with_letters(tokens: list[Token], listed: Reading) -> bool:
    """Whether a reply begins with a capital letter set off from what follows, which names no other option."""
    letters = [token for token in tokens[:2] if token.kind == "key" and token.text.isupper()]
    after = tokens[tokens.index(letters[0]) + 1 :] if letters else []
    if not after or after[0].kind not in _SETS_OFF:
        return False
    return not any(others_named(clause, list(listed.keys)) for clause in clauses(tokens))


def _deliberate(said: str, tokens: list[Token]) -> bool:
    """Whether letters written together are a list, such as "ACD" or "DB", and no word such as "be" or "BAD"."""
    if any(token.key for token in tokens):
        return True
    letters = said[tokens[0].start : tokens[0].start + len(tokens[0].text)]
    return set(letters.upper()).isdisjoint("AEIOU") or (
        letters.isupper() and list(letters) == sorted(letters)
    )


def _last_lines(said: str, tokenizer: Tokenizer) -> Found | None:
    """The lines that end a reply and hold nothing but options ("... is reduced.", "B")."""
    lines = said.split("\n")
    first = len(lines)
    while first and (not lines[first - 1].strip() or _is_list(lines[first - 1], tokenizer)):
        first -= 1
    block = "\n".join(lines[first:]).strip()
    if not block or not first or _LISTS_OPTIONS.search("\n".join(lines[:first]).strip()):
        return None
    found = _list_only(block, tokenizer.tokens(block), tokenizer)
    return ("last_line", found[1]) if found else None


def _is_list(line: str, tokenizer: Tokenizer) -> bool:
    if len(line) > 200:  # no list of options, but work for the tokenizer
        return False
    try:
        found = leading(tokenizer.tokens(line), tokenizer.texts, several=True)
    except NotReadableError:
        return False
    return found is not None and found[1]


def _quoted(tokens: list[Token], stated: list[Statement], several: bool) -> Reading | None:
    """Option texts in prose, unless letters are gone through that no rule could read."""
    listed = [token for token in tokens if token.kind == "key" and token.text.isupper()]
    return None if listed else prose(stated, several=several, brief=is_one_sentence(tokens))
