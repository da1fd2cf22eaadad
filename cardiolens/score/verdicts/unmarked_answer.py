"""The answer of a reply that marks none: the reply itself, its end, its statements (protocol 7.6)."""

import re

from cardiolens.report_text.lexicon import words
from cardiolens.score.verdicts.clauses import NAMES, Statement, clauses, others_named, polarity, statements
from cardiolens.score.verdicts.enumerations import enumeration
from cardiolens.score.verdicts.lists import leading
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.prose import is_one_sentence, prose
from cardiolens.score.verdicts.reading import UNREADABLE, NotReadableError, Reading
from cardiolens.score.verdicts.tokens import Token, Tokenizer

Found = tuple[str, Reading]

_SETS_OFF = frozenset({"stop", "close", "colon", "dash", "newline", "comma", "semicolon", "open", "reason"})
_LISTS_OPTIONS = re.compile(r"(?:options?|choices?|选项)[^\n]*:\s*$", re.IGNORECASE)
_NO_CHOICE = frozenset({*words().not_options, "option", "options", "choices", "选项"})
_LONGEST_LINE = 200  # a longer one is no list of options, but work for the tokenizer


def unmarked(plain: str, tokenizer: Tokenizer, *, several: bool) -> Found | None:
    """The rule and reading of a reply without marks; the first rule that finds options decides."""
    said = tokenizer.texts.without_listing(plain).strip()
    tokens = tokenizer.tokens(said)
    listed = None if _LISTS_OPTIONS.search(said.partition("\n")[0]) else _list_only(said, tokens, tokenizer)
    if listed and listed[1].readable:
        return listed
    stated = statements(tokens)
    return (
        _last_lines(said, tokenizer)
        or _found("enumeration", enumeration(stated))
        or _found("answer_phrase", _closing_letters(tokens, tokenizer.texts))
        or (listed if _begins_with_option(tokens) and "\n" not in said else None)
        or _found("option_text", _quoted(tokens, stated, several))
    )


def _begins_with_option(tokens: list[Token]) -> bool:
    kinds = (token.kind for token in tokens)
    return next((kind for kind in kinds if kind not in {"open", "label", "bullet"}), None) in NAMES


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
    """Return whether a reply begins with a capital letter that is set off, and names no other option."""
    letters = [token for token in tokens[:2] if token.kind == "key" and token.text.isupper()]
    after = tokens[tokens.index(letters[0]) + 1 :] if letters else []
    if not after or after[0].kind not in _SETS_OFF:
        return False
    return not any(others_named(clause, list(listed.keys)) for clause in clauses(tokens))


def _deliberate(said: str, tokens: list[Token]) -> bool:
    """Return whether letters written together are a list ("ACD", "DB") and no word ("be", "BAD")."""
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
    if len(line) > _LONGEST_LINE:
        return False
    found = _leading_alone(tokenizer.tokens(line), tokenizer.texts)
    return found is not None and found.readable


def _leading_alone(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """A list that is all there is; None where something readable follows it or there is none."""
    try:
        found = leading(tokens, texts, several=True)
    except NotReadableError:
        return UNREADABLE
    return found[0] if found and found[1] else None


def _quoted(tokens: list[Token], stated: list[Statement], several: bool) -> Reading | None:
    """Option texts in prose, unless letters are gone through that no rule could read."""
    listed = [token for token in tokens if token.kind == "key" and token.text.isupper()]
    return None if listed else prose(stated, several=several, brief=is_one_sentence(tokens), marked=False)


def _announces(token: Token) -> bool:
    return token.kind in {"verb", "colon"} or token.text in words().conclusions


def _closing_letters(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """The only letters of a reply, which end its last sentence ("The abnormal walls are B and D.")."""
    opening = next((at for at, token in enumerate(tokens) if token.kind == "key" and token.text.isupper()), 0)
    before = clauses(tokens[:opening])
    sentence = before[-1] if before else []
    if not sentence or not _announces(sentence[-1]) or polarity(sentence) in {"no", "open"}:
        return None
    if any(token.key or token.kind == "either" or token.text in _NO_CHOICE for token in sentence):
        return None
    return _leading_alone(tokens[opening:], texts)
