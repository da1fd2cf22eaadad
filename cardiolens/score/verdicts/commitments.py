"""Commitments of a reply to options, clause by clause: "I now favour B", "D is the better choice"."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.lists import leading
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import NotReadableError
from cardiolens.score.verdicts.reply_clauses import Clause, clauses, polarity
from cardiolens.score.verdicts.reply_tokens import Token, Tokenizer

Stance = Literal["commits", "affirms", "denies", "hedges", "mentions", "explains"]

_TOWARDS = frozenset({"to", "zu", "bis", "到"})
_ARROWS = frozenset({"->", "=>", "→", "⇒"})
_SAYS_NOTHING = frozenset({"label", "bullet", "open", "close", "also", "reason", "dash", "colon", "comma", "but"})
_ANNOUNCES = frozenset({"verb", "colon", "dash", "yes"})
_ENTRY = frozenset({"colon", "dash", "close", "open", "stop", "bar"})


@dataclass(frozen=True, slots=True)
class Said:
    """What one clause says of the options that it names."""

    stance: Stance
    keys: tuple[str, ...]
    by_letter: bool  # and not by the options' texts alone
    is_alone: bool  # nothing but the options, or with a word that concludes before them
    start: int
    end: int


def said_of_options(text: str, tokenizer: Tokenizer, *, texts: bool = False) -> Iterator[Said]:
    """What the clauses of a text say of options named by letter, or also by `texts`."""
    for clause in map(_without_interjection, clauses(tokenizer.tokens(text))):
        names = [token for token in clause if _names(token, tokenizer.texts, texts)]
        if names:
            stance, keys = _stance(clause, names, tokenizer.texts)
            last = clause[-1]
            yield Said(
                stance=stance,
                keys=keys,
                by_letter=any(token.kind == "key" for token in names),
                is_alone=_concludes(clause[: clause.index(names[0])]),
                start=clause[0].start,
                end=last.start + len(last.text),
            )


def _names(token: Token, texts: OptionTexts, with_texts: bool) -> bool:
    if token.kind == "key":
        return token.text.isupper() and token.key in texts.keys
    return with_texts and token.kind == "text"


def _stance(clause: Clause, names: list[Token], texts: OptionTexts) -> tuple[Stance, tuple[str, ...]]:
    keys = tuple(dict.fromkeys(token.key for token in names))
    at = clause.index(names[0])
    before = _without_arrows(clause[:at])
    judged = polarity([*(token for token in before if token.text.lower() not in _TOWARDS), *clause[at:]])
    if judged == "no":
        return "denies", keys
    if judged == "open":
        return ("commits" if _would_choose(clause, before) and _is_list(clause[at:], texts) else "hedges"), keys
    listed = _is_list(clause[at:], texts)
    if listed and (_commits(before) or len(before) < at):
        return "commits", listed
    if all(token.kind in _SAYS_NOTHING for token in _phrase(before)) and _is_subject(clause[at:], texts):
        return "commits", keys
    if judged == "yes":
        return "affirms", keys
    is_entry = clause[at + 1 : at + 2] and clause[at + 1].kind in _ENTRY
    return ("explains" if is_entry else "mentions"), keys


def _without_interjection(clause: Clause) -> Clause:
    """A clause without "Actually," or "No," at its beginning."""
    while len(clause) > 1 and clause[0].text.lower() in _interjections() and clause[1].kind in {"comma", "colon", "dash"}:
        clause = clause[2:]
    return clause


def _phrase(before: Clause) -> Clause:
    """What stands before an option since the last comma."""
    commas = [at for at, token in enumerate(before) if token.kind == "comma"]
    return before[commas[-1] :] if commas else before


@functools.cache
def _interjections() -> frozenset[str]:
    return frozenset(words().second_thoughts.interjections)


def _without_arrows(before: Clause) -> Clause:
    while before and before[-1].text in _ARROWS:
        before = before[:-1]
    return before


def _is_list(tokens: Clause, texts: OptionTexts) -> tuple[str, ...]:
    """The options of tokens that are nothing but a list."""
    try:
        list_and_end = leading(tokens, texts, several=True)
    except NotReadableError:
        return ()
    return list_and_end[0].keys if list_and_end and list_and_end[1] else ()


def _commits(before: Clause) -> bool:
    """Return whether what stands before a list commits a reply to it; so does nothing at all."""
    if all(token.kind in _SAYS_NOTHING for token in before):
        return True
    return before[-1].kind in _ANNOUNCES or any(token.text.lower() in _before() for token in before)


def _is_subject(tokens: Clause, texts: OptionTexts) -> bool:
    """Return whether a list is followed by what makes it the answer: "B is more accurate"."""
    return any(token.text.lower() in _after() for token in tokens[1:] if not token.key)


def _would_choose(clause: Clause, before: Clause) -> bool:
    """Return whether all that leaves a clause open is the "would" of "I would call this C"."""
    open_words = [token.text.lower() for token in clause if token.kind in {"perhaps", "query", "either"}]
    open_words = [word for word in open_words if word not in _TOWARDS and word not in _ARROWS]
    return set(open_words) <= {"would"} and any(
        token.text.lower() in _before() for token in before
    )


def _concludes(before: Clause) -> bool:
    return all(token.kind in _SAYS_NOTHING or token.text.lower() in words().conclusions for token in before)


@functools.cache
def _before() -> frozenset[str]:
    return frozenset(words().commits.before)


@functools.cache
def _after() -> frozenset[str]:
    return frozenset(words().commits.after)
