"""What a clause says of the options that it names: commits to them, denies them or leaves them open."""

import functools
from itertools import zip_longest
from typing import Literal

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.lists import leading
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import NotReadableError
from cardiolens.score.verdicts.reply_clauses import Clause, joins_no_names, polarity
from cardiolens.score.verdicts.reply_tokens import ARROWS, Token

Stance = Literal[
    "commits", "adds", "removes", "affirms", "denies", "hedges", "rivals", "mentions", "explains"
]

TOWARDS = frozenset({"to", "zu", "bis", "到"})
_SAYS_NOTHING = frozenset(
    {"pronoun", "label", "bullet", "open", "close", "also", "reason", "dash", "colon", "comma", "but"}
)
_ANNOUNCES = frozenset({"verb", "colon", "dash", "yes"})
_DEFINES = frozenset(
    {"describe", "describes", "refer", "refers", "imply", "implies", "presuppose", "presupposes"}
)
_CHOICE_OF = frozenset({"among", "amongst"})
_BETTER = frozenset({"better", "preferable", "besser"})
_ENTRY = frozenset({"colon", "dash", "close", "open", "stop", "bar"})


def stance_of(clause: Clause, names: list[Token], texts: OptionTexts) -> tuple[Stance, tuple[str, ...]]:
    keys = tuple(dict.fromkeys(token.key for token in names))
    at = clause.index(names[0])
    if at and clause[at - 1].text.lower() in _CHOICE_OF:
        return "mentions", keys  # "needed to choose among A, B and C"
    before = _without_arrows(clause[:at])
    stance = polarity(_judging(before, clause[at:], texts))
    hedging = {token.text.lower() for token in clause} & _hedges()
    if hedging and not (hedging <= _DEFINES and (stance == "no" or _is_subject(clause[at:], texts))):
        stance = "open"
    if stance in {"yes", "bare"} and (edited := _edit(clause, at, texts)):
        return edited, keys
    if stance == "no" or any(token.text.lower() in _denies() for token in before):
        return "denies", keys
    if stance == "open":
        return _open_stance(clause, at, before, texts, keys)
    listed_keys = _is_list(_up_to_reason(clause[at:]) if before else clause[at:], texts)
    if listed_keys and (_commits(before) or len(before) < at):
        return "commits", listed_keys
    return _of_subject(clause, at, stance, texts), keys


def _open_stance(
    clause: Clause, at: int, before: Clause, texts: OptionTexts, keys: tuple[str, ...]
) -> tuple[Stance, tuple[str, ...]]:
    """What a clause with words that leave open says of its options; it may choose them all the same."""
    if _is_preferred(clause, at, texts):
        return "commits", keys
    if _would_choose(clause, before) and (listed_keys := _is_list(clause[at:], texts)):
        return "commits", listed_keys
    if _prefers(clause[at:]):
        return "rivals", keys
    return ("mentions" if _open_words(clause) <= _processes() else "hedges"), keys


def _edit(clause: Clause, at: int, texts: OptionTexts) -> Stance | None:
    """Whether a clause adds options to an answer or takes some away: "drop C", "also D"."""
    before, rest = clause[:at], _without_remarks(clause[at:])
    introducer = next((token for token in reversed(before) if token.kind not in {"label", "open"}), None)
    listed = _up_to_reason(rest)
    while listed and listed[-1].kind == "also":  # "adding C as well"
        listed = listed[:-1]
    after = [token for token in rest if not token.key]
    edits: tuple[tuple[Stance, tuple[str, ...]], ...] = (
        ("adds", words().commits.adds),
        ("removes", words().commits.removes),
    )
    for stance, verbs in edits:
        if introducer and introducer.text.lower() in verbs and _is_list(listed, texts):
            return stance
        if says_nothing(before) and any(token.text.lower() in verbs for token in after):
            return stance
    is_also = any(token.kind == "also" for token in before) or (rest[-1].kind == "also")
    return "adds" if is_also and says_nothing(before) and clause[at].kind == "key" else None


def _up_to_reason(tokens: Clause) -> Clause:
    """Options without what follows a colon, where that names no letter: "B: the wall is hard to see"."""
    at = next((at for at, token in enumerate(tokens) if token.kind in {"colon", "dash"}), len(tokens))
    return tokens if any(token.key for token in tokens[at:]) else tokens[:at]


def _of_subject(clause: Clause, at: int, stance: str, texts: OptionTexts) -> Stance:
    """What a clause says of options that it does not end with."""
    before = clause[:at]
    if says_nothing(_phrase(before)) and _is_subject(clause[at:], texts):
        return "commits"
    if _is_called_right(clause[at + 1 :]):
        return "commits"
    if any(token.text.lower() == "would be" for token in clause[at:]):
        return "hedges"
    if stance == "yes":
        return "affirms"
    ends = _ENTRY if says_nothing(before) else _ENTRY - {"close", "open"}
    is_entry = clause[at + 1 : at + 2] and clause[at + 1].kind in ends
    return "explains" if is_entry else "mentions"


def _is_called_right(rest: Clause) -> bool:
    """Return whether all that follows an option calls it right: "... make D the right choice"."""
    return (
        len(rest) > 1
        and rest[0].text.lower() in {"the", "my"}
        and all(token.text.lower() in _after() or token.kind == "label" for token in rest[1:])
    )


def _phrase(before: Clause) -> Clause:
    """What stands before an option since the last comma or colon."""
    commas = [at for at, token in enumerate(before) if token.kind in {"comma", "colon"}]
    return before[commas[-1] :] if commas else before


def _judging(before: Clause, rest: Clause, texts: OptionTexts) -> Clause:
    """The tokens that affirm or deny: without remarks in brackets, "to", and letters of no option."""
    clause = [token for token in before if token.kind != "either"] + _without_remarks(rest)
    return [
        token
        for at, token in enumerate(clause)
        if (token.kind != "key" or token.key in texts.keys)
        and (token.text.lower() not in TOWARDS or any(after.key for after in clause[at + 1 : at + 2]))
    ]


def _without_remarks(tokens: Clause) -> Clause:
    """Tokens without brackets that name no option."""
    kept: Clause = []
    at = 0
    while at < len(tokens):
        if tokens[at].kind == "open":
            end = next((n for n in range(at, len(tokens)) if tokens[n].kind == "close"), len(tokens) - 1)
            if not any(token.key for token in tokens[at:end]):
                at = end + 1
                continue
        kept.append(tokens[at])
        at += 1
    return kept


def _without_arrows(before: Clause) -> Clause:
    while before and before[-1].text in ARROWS:
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
    if says_nothing(_phrase(before)):
        return True
    introducer = next((token for token in reversed(before) if token.kind not in {"label", "open"}), None)
    if any(token.text.lower() in choosing_words() for token in before):
        return True
    if introducer is not None and introducer.kind == "pronoun":
        return True  # "on second look this should be D"
    is_of_frames = any(token.text.lower() in _no_choice() for token in before)
    return introducer is not None and introducer.kind in _ANNOUNCES and not is_of_frames


def says_nothing(before: Clause) -> bool:
    return all(token.kind in _SAYS_NOTHING for token in before)


def _is_subject(tokens: Clause, texts: OptionTexts) -> bool:
    """Return whether a list is followed by what makes it the answer: "B is more accurate"."""
    return any(
        token.text.lower() in _after()
        # "option C would need", "B needs a better image"
        and not (following and following.kind in {"key", "word"} and following.text.lower() not in _after())
        for token, following in zip_longest(tokens[1:], tokens[2:])
        if token and not token.key
    )


def _is_preferred(clause: Clause, at: int, texts: OptionTexts) -> bool:
    """Return whether all that leaves a clause open is the "would" of "B would be my best guess"."""
    is_denied = any(token.kind in {"not", "no"} for token in clause)
    is_subject = says_nothing(clause[:at]) and _is_subject(clause[at:], texts)
    is_open = bool(_open_words(clause) - {"would", "would be", "guess"})
    return not is_open and is_subject and not is_denied


def _prefers(tokens: Clause) -> bool:
    """Return whether a clause sets an option above another: "C may be the better answer"."""
    return any(token.text.lower() in _BETTER for token in tokens)


def _would_choose(clause: Clause, before: Clause) -> bool:
    """Return whether all that leaves a clause open is the "would" of "I would call this C"."""
    is_denied = any(token.kind in {"not", "no"} for token in clause)
    chooses = any(token.text.lower() in choosing_words() for token in before)
    return _open_words(clause) <= {"would", *_processes()} and chooses and not is_denied


def _open_words(clause: Clause) -> set[str]:
    """What leaves a clause open."""
    open_words = {token.text.lower() for token in clause if token.kind in {"perhaps", "query"}}
    open_words |= {token.text.lower() for token in clause if token.text.lower() in _hedges()}
    between = [
        token
        for at, token in enumerate(clause)
        if token.kind == "either" and token.text.lower() not in TOWARDS and not joins_no_names(clause, at)
    ]
    first = next(at for at, token in enumerate(clause) if token.key)
    return (open_words | {token.text.lower() for token in between if token in clause[first:]}) - ARROWS


def concludes(before: Clause) -> bool:
    return all(token.kind in _SAYS_NOTHING or token.text.lower() in words().conclusions for token in before)


@functools.cache
def _processes() -> frozenset[str]:
    return frozenset(words().commits.processes)


@functools.cache
def _denies() -> frozenset[str]:
    return frozenset(words().commits.denies)


@functools.cache
def _hedges() -> frozenset[str]:
    return frozenset(words().commits.hedges)


@functools.cache
def _no_choice() -> frozenset[str]:
    return frozenset({*words().not_options, "options", "choices", "选项"})


@functools.cache
def choosing_words() -> frozenset[str]:
    return frozenset(words().commits.before)


@functools.cache
def _after() -> frozenset[str]:
    return frozenset(words().commits.after)
