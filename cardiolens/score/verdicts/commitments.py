"""Commitments of a reply to options, clause by clause: "I now favour B", "D is the better choice"."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cardiolens.report_text.reply_lexicon import kinds, words
from cardiolens.score.verdicts.conclusion import conclusion
from cardiolens.score.verdicts.explained_away import effect
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reply_clauses import Clause, clauses
from cardiolens.score.verdicts.reply_tokens import Token, Tokenizer
from cardiolens.score.verdicts.stance import TOWARDS, Stance, concludes, says_nothing, stance_of

_BECOMES = frozenset({"should be", "should read", "should have been", "becomes", "is actually", "is really"})
_SUSPECTS = frozenset({"perhaps", "label", "join", "comma", "verb", "yes", "open", "close"})
_OF_PAIR = frozenset({"former", "latter"})


@dataclass(frozen=True, slots=True)
class Remark:
    """What one clause says of the options that it names."""

    stance: Stance
    keys: tuple[str, ...]
    by_letter: bool  # and not by the options' texts alone
    is_alone: bool  # nothing but the options, or with a word that concludes before them
    start: int
    end: int
    is_gloss: bool = False  # the letters stand in brackets after what they stand for: "the lateral wall (D)"
    is_added: bool = False  # with "also" or "too"
    is_suspected: bool = False  # and nothing else is said: "maybe D", "D may be involved"


def said_of_options(text: str, tokenizer: Tokenizer, *, texts: bool = False) -> Iterator[Remark]:
    """What the clauses of a text say of options named by letter, or also by `texts`."""
    previous: Remark | None = None
    tokens = tokenizer.tokens(text)
    all_clauses = [conclusion(clause) for clause in clauses(tokens)]
    for at, clause in enumerate(all_clauses):
        names = [token for token in clause if _names(token, tokenizer.texts, texts)]
        if chosen := _of_pair(clause, names):
            yield chosen
            previous = chosen
        elif exchange := _exchanged(clause, names):
            yield from exchange
            previous = exchange[-1]
        elif names:
            stance, keys = stance_of(clause, names, tokenizer.texts)
            if stance in {"mentions", "explains", "affirms"} and _is_explained_away(all_clauses, at, text):
                stance = "denies"
            last = clause[-1]
            remark = Remark(
                stance=stance,
                keys=keys,
                by_letter=any(token.kind == "key" for token in names),
                is_alone=concludes(clause[: clause.index(names[0])]),
                start=clause[0].start,
                end=last.start + len(last.text),
                is_gloss=_is_gloss(clause, names),
                is_suspected=stance == "hedges"
                and all(token.key or token.kind in _SUSPECTS for token in clause),
                is_added=_adds(clause),
            )
            previous = _continued(remark, previous, text) if previous else remark
            yield previous


def _adds(clause: Clause) -> bool:
    """Return whether a clause adds to what was said, and not only what it "would also" need."""
    first = next(at for at, token in enumerate(clause) if token.key)
    is_supposed = any(token.text.lower() in {"would", "would be"} for token in clause[first:])
    return any(token.kind == "also" for token in clause) and not is_supposed


def _of_pair(clause: Clause, names: list[Token]) -> Remark | None:
    """What "between B and C, the latter" chooses."""
    spoken = {token.text.lower() for token in clause}
    is_pair = clause[0].text.lower() == "between" and len({token.key for token in names}) == 2
    if (
        not is_pair
        or len(spoken & _OF_PAIR) != 1
        or {"not", "no", "query"} & {token.kind for token in clause}
    ):
        return None
    key = names[0 if "former" in spoken else -1].key
    last = clause[-1]
    return Remark("commits", (key,), True, False, clause[0].start, last.start + len(last.text))


def _exchanged(clause: Clause, names: list[Token]) -> list[Remark]:
    """What "C should be D" says of an answer: C is taken away, and D is added."""
    if len(names) != 2 or any(token.kind != "key" for token in names):
        return []
    first, second = (clause.index(name) for name in names)
    between = " ".join(token.text.lower() for token in clause[first + 1 : second])
    is_change = between in TOWARDS and _change().search(" ".join(token.text for token in clause[:first]))
    is_becoming = between in _BECOMES and says_nothing(clause[:first])
    if not (is_change or is_becoming) or clause[second + 1 :]:
        return []
    old, new = names
    return [
        Remark("removes", (old.key,), True, False, clause[0].start, old.start + 1),
        Remark("adds", (new.key,), True, False, old.start + 1, new.start + 1),
    ]


@functools.cache
def _change() -> re.Pattern[str]:
    return re.compile(r"\b(?:chang|switch|revis|updat|amend|correct|änder|korrigier)\w*\b.*\b(?:from|von)$")


def _is_gloss(clause: Clause, names: list[Token]) -> bool:
    """Return whether every letter of a clause stands alone in brackets, after words."""
    letters = [at for at, token in enumerate(clause) if token in names and token.kind == "key"]
    return bool(letters) and all(
        at > 1
        and [clause[at - 1].kind, *(token.kind for token in clause[at + 1 : at + 2])] == ["open", "close"]
        for at in letters
    )


def _is_explained_away(all_clauses: list[Clause], at: int, text: str) -> bool:
    """Return whether the rest of the line of a clause names another cause of what it describes."""
    clause, rest = all_clauses[at], list[Token]()
    for later in all_clauses[at + 1 :]:
        if any(token.key for token in later) or "\n" in text[clause[0].start : later[0].start]:
            break
        rest += later
    return effect(clause, rest, affirms=False) == "denied"


def _continued(remark: Remark, previous: Remark, text: str) -> Remark:
    """A remark that only names options, by the one that it goes on from: "C is spared as well as D"."""
    if previous.stance == "denies" and remark.stance == "adds" and _goes_on(text[previous.end : remark.end]):
        return replace(remark, stance="denies")  # "A and B are wrong. D too."
    if remark.stance != "commits" or not remark.is_alone:
        return remark
    if previous.stance == "hedges" and text[previous.end : remark.start].strip(" )") == ",":
        return replace(remark, stance="hedges")  # "Differential: B (...), C (...)"
    between = text[previous.end : remark.start].strip(" ,").lower()
    if previous.stance == "denies" and kinds().get(between, "") in {"join", "also"}:
        return replace(remark, stance="denies")
    is_exchanged = previous.stance == "removes" and _exchange().search(
        text[previous.start : previous.end].lower()
    )
    return replace(remark, stance="adds") if is_exchanged and between in {"with", "by", "for"} else remark


def _goes_on(text: str) -> bool:
    """Return whether a text only adds options to what was said before: ". D too", ", and also D"."""
    spoken_words = re.findall(r"[a-z]{2,}", text.lower())
    return all(kinds().get(word, "") in {"join", "also"} for word in spoken_words)


@functools.cache
def _exchange() -> re.Pattern[str]:
    return re.compile(r"\b(?:replac|swap|exchang)")


def _names(token: Token, texts: OptionTexts, with_texts: bool) -> bool:
    if token.kind == "key":
        return token.text.isupper() and token.key in texts.keys
    return with_texts and token.kind == "text"


@functools.cache
def provisional() -> re.Pattern[str]:
    """Pattern of what says that an answer was not the last, in lower case."""
    return re.compile("|".join(words().second_thoughts.provisional))


@functools.cache
def order() -> re.Pattern[str]:
    """Pattern of what says that an answer is the last, in lower case."""
    return re.compile("|".join(words().second_thoughts.ordering))
