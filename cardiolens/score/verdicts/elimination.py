"""What is left of the options where a reply denies all others (protocol 17.16)."""

import re

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import LEAVES, Clause, Statement, polarity

NORMAL = re.compile(r"(?:normal|no|none|neither|absent)\b", re.IGNORECASE)
"""Begins the text of an option that says that nothing was found."""

_REST = frozenset({"rest", "other", "others", "remaining"})
_RIGHT = frozenset({"right", "correct", "true"})
_STEM = 5  # letters that two forms of a word share: "thickened", "thickness"


def remaining(
    option_statements: list[Statement], texts: OptionTexts, question: str, *, several: bool
) -> Reading | None:
    """The options that statements name beside all others, which they deny; the one that none of them names.

    What a reply says of the options that it does not deny must be what the question asks for.
    """
    normal = [key for key, text in texts.options if NORMAL.match(text)]
    abnormal = texts.keys - set(normal)
    named: dict[str, None] = {}
    denied: set[str] = set()
    stances: set[str] = set()  # of what is named: a walk through all options judges each
    for clause, stance in option_statements:
        keys = [token.key for token in clause if token.key]
        if stance == "no":
            denied.update(keys)
        elif stance == "open" or not _answers(
            clause, question, frozenset().union(*(texts.own.get(key, frozenset()) for key in keys))
        ):
            return None
        else:
            named.update(dict.fromkeys(keys))
            stances.add(stance)
    if len(stances) > 1 or not denied or denied & named.keys():
        return None
    if not several and not named and len(undenied := texts.keys - denied) == 1:
        is_denied = all(_denies_by_name(clause, question) for clause, _ in option_statements)
        return reading_of(list(undenied)) if is_denied else None
    if not abnormal <= denied | named.keys():
        return None
    if not named and len(normal) == 1 and len(abnormal) > 1 and normal[0] not in denied:
        return reading_of(normal)
    return reading_of(list(named)) if named and named.keys() <= abnormal else None


def left_by_denials(option_statements: list[Statement]) -> Reading | None:
    """What a reply says that its denials leave: "A and C are preserved, leaving a mid-wall stripe"."""
    leaves = [
        clause
        for clause, _ in option_statements
        if clause[0].text in LEAVES or (clause[1:2] and clause[1].text in LEAVES)
    ]
    other_stances = [stance for clause, stance in option_statements if clause not in leaves]
    if len(leaves) != 1 or not other_stances or any(stance != "no" for stance in other_stances):
        return None
    if polarity(leaves[0]) in {"no", "open"}:
        return None
    return reading_of([token.key for token in leaves[0] if token.key])


def rest(option_statements: list[Statement], all_clauses: list[Clause], texts: OptionTexts) -> Reading | None:
    """The options beside those that a reply denies, where it affirms the rest: "the others are abnormal"."""
    denied = {
        token.key for clause, stance in option_statements if stance == "no" for token in clause if token.key
    }
    clauses_of_rest = [
        clause
        for clause in all_clauses
        if any(token.text.lower() in _REST for token in clause) and not any(token.key for token in clause)
    ]
    is_affirmed = len(clauses_of_rest) == 1 and (
        "yes" in (kinds := {token.kind for token in clauses_of_rest[0]})
        or any(token.text.lower() in _RIGHT for token in clauses_of_rest[0])
    )
    if not is_affirmed or kinds & {"no", "not", "perhaps", "query"}:
        return None
    if not denied or any(stance != "no" for _, stance in option_statements):
        return None
    return reading_of([key for key, text in texts.options if key not in denied and not NORMAL.match(text)])


def _denies_by_name(clause: Clause, question: str) -> bool:
    """Return whether a clause denies options by their letters, or by their texts behind its denial."""
    kinds = [token.kind for token in clause]
    first = next(at for at, token in enumerate(clause) if token.key)
    if {"not", "no"} <= set(kinds):
        return False  # "it is not that A is wrong"
    if kinds[first] == "key":
        return True
    return _answers(clause, question) and (
        "not" in kinds[:first] or kinds[-1] in {"query", "not", "no"} or kinds[-2:] == ["no", "comma"]
    )


def _answers(clause: Clause, question: str, own_words: frozenset[str] = frozenset()) -> bool:
    """Return whether a clause says of its options what a question asks for, or nothing at all."""
    stems = {
        token.text.lower()[:_STEM]
        for token in clause
        if token.kind == "word" and token.text.lower() not in {*words().plain, *own_words}
    }
    stems_of_question = {
        word[:_STEM] for word in (*re.findall(r"\w{5,}", question.lower()), *words().findings)
    }
    return not stems or not stems.isdisjoint(stems_of_question)
