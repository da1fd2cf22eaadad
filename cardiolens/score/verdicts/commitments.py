"""Commitments of a reply to options, clause by clause: "I now favour B", "D is the better choice"."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from cardiolens.report_text.reply_lexicon import kinds, words
from cardiolens.score.verdicts.explained_away import effect
from cardiolens.score.verdicts.lists import leading
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import NotReadableError
from cardiolens.score.verdicts.reply_clauses import Clause, clauses, joins_no_names, polarity
from cardiolens.score.verdicts.reply_tokens import ARROWS, Token, Tokenizer

Stance = Literal[
    "commits", "adds", "removes", "affirms", "denies", "hedges", "rivals", "mentions", "explains"
]

_TOWARDS = frozenset({"to", "zu", "bis", "到"})
_PAUSES = frozenset({"...", "…"})
_SAYS_NOTHING = frozenset(
    {"pronoun", "label", "bullet", "open", "close", "also", "reason", "dash", "colon", "comma", "but"}
)
_ANNOUNCES = frozenset({"verb", "colon", "dash", "yes"})
_BECOMES = frozenset({"should be", "should read", "should have been", "becomes", "is actually", "is really"})
_DEFINES = frozenset(
    {"describe", "describes", "refer", "refers", "imply", "implies", "presuppose", "presupposes"}
)
_SUSPECTS = frozenset({"perhaps", "label", "join", "comma", "verb", "yes", "open", "close"})
_OF_PAIR = frozenset({"former", "latter"})
_CHOICE_OF = frozenset({"among", "amongst"})
_BETTER = frozenset({"better", "preferable", "besser"})
_UNABLE = frozenset({"cannot", "can't", "can not"})
_ENTRY = frozenset({"colon", "dash", "close", "open", "stop", "bar"})


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
    all_clauses = [_conclusion(clause) for clause in clauses(tokens)]
    for at, clause in enumerate(all_clauses):
        names = [token for token in clause if _names(token, tokenizer.texts, texts)]
        if chosen := _of_pair(clause, names):
            yield chosen
            previous = chosen
        elif exchange := _exchanged(clause, names):
            yield from exchange
            previous = exchange[-1]
        elif names:
            stance, keys = _stance(clause, names, tokenizer.texts)
            if stance in {"mentions", "explains", "affirms"} and _is_explained_away(all_clauses, at, text):
                stance = "denies"
            last = clause[-1]
            remark = Remark(
                stance=stance,
                keys=keys,
                by_letter=any(token.kind == "key" for token in names),
                is_alone=_concludes(clause[: clause.index(names[0])]),
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
    is_change = between in _TOWARDS and _change().search(" ".join(token.text for token in clause[:first]))
    is_becoming = between in _BECOMES and _says_nothing(clause[:first])
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


def _stance(clause: Clause, names: list[Token], texts: OptionTexts) -> tuple[Stance, tuple[str, ...]]:
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
        if _says_nothing(before) and any(token.text.lower() in verbs for token in after):
            return stance
    is_also = any(token.kind == "also" for token in before) or (rest[-1].kind == "also")
    return "adds" if is_also and _says_nothing(before) and clause[at].kind == "key" else None


def _up_to_reason(tokens: Clause) -> Clause:
    """Options without what follows a colon, where that names no letter: "B: the wall is hard to see"."""
    at = next((at for at, token in enumerate(tokens) if token.kind in {"colon", "dash"}), len(tokens))
    return tokens if any(token.key for token in tokens[at:]) else tokens[:at]


def _of_subject(clause: Clause, at: int, stance: str, texts: OptionTexts) -> Stance:
    """What a clause says of options that it does not end with."""
    before = clause[:at]
    if _says_nothing(_phrase(before)) and _is_subject(clause[at:], texts):
        return "commits"
    if _is_called_right(clause[at + 1 :]):
        return "commits"
    if any(token.text.lower() == "would be" for token in clause[at:]):
        return "hedges"
    if stance == "yes":
        return "affirms"
    ends = _ENTRY if _says_nothing(before) else _ENTRY - {"close", "open"}
    is_entry = clause[at + 1 : at + 2] and clause[at + 1].kind in ends
    return "explains" if is_entry else "mentions"


def _is_called_right(rest: Clause) -> bool:
    """Return whether all that follows an option calls it right: "... make D the right choice"."""
    return (
        len(rest) > 1
        and rest[0].text.lower() in {"the", "my"}
        and all(token.text.lower() in _after() or token.kind == "label" for token in rest[1:])
    )


def _conclusion(clause: Clause) -> Clause:
    """What a clause comes down to: "... see no jet, so A" without its premise, and without "Actually,"."""
    clause = _without_premise(_without_pair(_without_interjection(_without_inner_arrows(clause))))
    first_name = next((at for at, token in enumerate(clause) if token.key), 0)
    return clause[
        max((at for at in range(first_name) if clause[at].text.lower() in words().conclusions), default=0) :
    ]


def _without_inner_arrows(clause: Clause) -> Clause:
    """A clause without the arrows that lead from an option's text to a letter: "mildly reduced → B"."""
    return [
        token
        for at, token in enumerate(clause)
        if token.text not in ARROWS
        or not any(before.key for before in clause[:at])
        or clause[at - 1].kind in {"key", "query"}
        or [after.kind for after in clause[at + 1 : at + 2]] != ["key"]
    ]


def _without_pair(clause: Clause) -> Clause:
    """A clause without the two options that it chooses from: "between B and C, the rim speaks for C"."""
    comma = next((at for at, token in enumerate(clause) if token.kind == "comma"), 0)
    pair = [token for token in clause[1:comma] if token.kind not in {"label", "join"}]
    is_pair = clause[:1] and clause[0].text.lower() == "between" and len(pair) == 2
    rest = clause[comma + 1 :]
    is_chosen = any(token.key in {name.key for name in pair} for token in rest if token.key)
    return rest if is_pair and is_chosen and all(token.key for token in pair) else clause


def _without_premise(clause: Clause) -> Clause:
    """A clause without what stands before the comma of a commitment: "frame 8 is misread, call it D"."""
    first_name = next((at for at, token in enumerate(clause) if token.key), 0)
    at = max((at for at in range(first_name) if clause[at].kind == "comma"), default=-1)
    premise = clause[: max(at, 0)]
    commits = any(token.text.lower() in _before() for token in clause[at + 1 : first_name])
    is_open = any(
        token.kind in {"query", "either"} or (token.kind == "perhaps" and token.text.lower() not in _UNABLE)
        for token in premise
    )
    return clause[at + 1 :] if commits and premise and not is_open else clause


def _without_interjection(clause: Clause) -> Clause:
    """A clause without "...", "Actually," or "No," at its beginning."""
    while len(clause) > 1 and clause[0].text in _PAUSES:
        clause = clause[1:]
    while (
        len(clause) > 2  # "Yes, and it reaches the border" ends its first clause at the comma
        and clause[0].text.lower() in _interjections()
        and clause[1].kind in {"comma", "colon", "dash"}
    ):
        clause = clause[2:]
    return clause


def _phrase(before: Clause) -> Clause:
    """What stands before an option since the last comma or colon."""
    commas = [at for at, token in enumerate(before) if token.kind in {"comma", "colon"}]
    return before[commas[-1] :] if commas else before


@functools.cache
def _interjections() -> frozenset[str]:
    return frozenset(words().second_thoughts.interjections)


def _judging(before: Clause, rest: Clause, texts: OptionTexts) -> Clause:
    """The tokens that affirm or deny: without remarks in brackets, "to", and letters of no option."""
    clause = [token for token in before if token.kind != "either"] + _without_remarks(rest)
    return [
        token
        for at, token in enumerate(clause)
        if (token.kind != "key" or token.key in texts.keys)
        and (token.text.lower() not in _TOWARDS or any(after.key for after in clause[at + 1 : at + 2]))
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
    if _says_nothing(_phrase(before)):
        return True
    introducer = next((token for token in reversed(before) if token.kind not in {"label", "open"}), None)
    if any(token.text.lower() in _before() for token in before):
        return True
    if introducer is not None and introducer.kind == "pronoun":
        return True  # "on second look this should be D"
    is_of_frames = any(token.text.lower() in _no_choice() for token in before)
    return introducer is not None and introducer.kind in _ANNOUNCES and not is_of_frames


def _says_nothing(before: Clause) -> bool:
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
    is_subject = _says_nothing(clause[:at]) and _is_subject(clause[at:], texts)
    is_open = bool(_open_words(clause) - {"would", "would be", "guess"})
    return not is_open and is_subject and not is_denied


def _prefers(tokens: Clause) -> bool:
    """Return whether a clause sets an option above another: "C may be the better answer"."""
    return any(token.text.lower() in _BETTER for token in tokens)


def _would_choose(clause: Clause, before: Clause) -> bool:
    """Return whether all that leaves a clause open is the "would" of "I would call this C"."""
    is_denied = any(token.kind in {"not", "no"} for token in clause)
    chooses = any(token.text.lower() in _before() for token in before)
    return _open_words(clause) <= {"would", *_processes()} and chooses and not is_denied


def _open_words(clause: Clause) -> set[str]:
    """What leaves a clause open."""
    open_words = {token.text.lower() for token in clause if token.kind in {"perhaps", "query"}}
    open_words |= {token.text.lower() for token in clause if token.text.lower() in _hedges()}
    between = [
        token
        for at, token in enumerate(clause)
        if token.kind == "either" and token.text.lower() not in _TOWARDS and not joins_no_names(clause, at)
    ]
    first = next(at for at, token in enumerate(clause) if token.key)
    return (open_words | {token.text.lower() for token in between if token in clause[first:]}) - ARROWS


@functools.cache
def provisional() -> re.Pattern[str]:
    """Pattern of what says that an answer was not the last, in lower case."""
    return re.compile("|".join(words().second_thoughts.provisional))


@functools.cache
def order() -> re.Pattern[str]:
    """Pattern of what says that an answer is the last, in lower case."""
    return re.compile("|".join(words().second_thoughts.ordering))


def _concludes(before: Clause) -> bool:
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
def _before() -> frozenset[str]:
    return frozenset(words().commits.before)


@functools.cache
def _after() -> frozenset[str]:
    return frozenset(words().commits.after)
