"""Checks of a house's headings and sentences: ours must be understood, and theirs may not say otherwise."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.curation.questions.house_slots import NUMBER, WORDS, filled, numbering, slots
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.phrases import HouseStyle
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.understanding import unknown_words, vocabulary

_LETTERS = re.compile(r"[^\W\d_]+")
_PIECES = re.compile(r"[^\W_]+|#|\{\}")
_BRACKET = re.compile(r"\([^()]*[#\d][^()]*\)")  # as of what is normal
_ADDENDUM = ("addendum",)
_NAME = re.compile(r"[a-z]+")
# Roles of words that keep a sentence open, whatever the house says in ours; a plan may be left out.
_UNSURE = ("uncertain", "uncertain_behind")
_OPEN = (*_UNSURE, "hypothetical")
_MOST_SHOWN = 20
_SAMPLE = "50"  # in the place of a number


def checked_house(house: HouseStyle, catalogue: Catalogue, path: Path) -> HouseStyle:
    """Return a house's style, its sentences trimmed; InputError names the entries that cannot be right."""
    problems = chain(
        ((f"heading {key!r}", _problem_of_heading(key, ours)) for key, ours in house.headings.items()),
        (
            (f"values {name!r}", _problem_of_values(name, values, catalogue))
            for name, values in house.values.items()
        ),
        (
            (f"sentence {key!r}", _problem(key, ours, house, catalogue))
            for key, ours in house.sentences.items()
        ),
    )
    wrong = [f"{entry} {problem}" for entry, problem in problems if problem is not None]
    if twice := _twice(house.sentences):
        wrong.append(f"sentence {twice!r} stands more than once, in other letters; case does not matter")
    if wrong:
        more = [f"and {len(wrong) - _MOST_SHOWN} more"] if len(wrong) > _MOST_SHOWN else []
        raise InputError(f"words={path}: " + "\n  ".join([*wrong[:_MOST_SHOWN], *more]))
    sentences = {key.strip().rstrip("."): " ".join(ours.split()) for key, ours in house.sentences.items()}
    return replace(house, sentences=sentences)


def _problem_of_heading(heading: str, ours: str) -> str | None:
    """Return what is wrong with a heading and ours."""
    if not _LETTERS.search(heading) or slots(heading):
        return "has no letters, or a slot; give the label alone"
    if _opens_examination(set(_LETTERS.findall(heading.lower()))):
        return "opens a report with us, earlier or current; leave it out"
    label = tuple(_LETTERS.findall(ours.lower()))
    if label in grammar().headings or label in grammar().ventricles or label == _ADDENDUM:
        return None
    if _opens_examination(set(label)):  # `Previous report`
        return None
    return (
        f"is to mean {ours!r}, which is no heading of ours; give one, e.g. Findings, Left ventricle, LGE, "
        "Perfusion, T2, Conclusion, History, Previous report"
    )


def _opens_examination(label: set[str]) -> bool:
    """Return whether an earlier or the current report begins at a label: `current report`."""
    return any(
        label & kinds["when"] and label & kinds["what"] and label <= frozenset().union(*kinds.values())
        for kinds in grammar().examinations.values()
    )


def _problem_of_values(name: str, values: Mapping[str, str], catalogue: Catalogue) -> str | None:
    """Return what is wrong with the values of a name."""
    if not _NAME.fullmatch(name):
        return "is no name; write it in small letters"
    if not values or not all(theirs.strip() for theirs in values):
        return "has no values, or an empty one"
    if twice := _twice(values):
        return f"has {twice!r} more than once, in other letters; case does not matter"
    if with_slot := next((text for pair in values.items() for text in pair if slots(text)), None):
        return f"has a slot in {with_slot!r}; give the value alone"
    return next(filter(None, (_doubt_of(theirs, catalogue) for theirs in values)), None)


def _doubt_of(theirs: str, catalogue: Catalogue, kinds: Collection[str] = _OPEN) -> str | None:
    """Say that words leave open what they say, unless in a bracket: `58 % (expected 55 to 70)`."""
    bare = _BRACKET.sub(" ", theirs)
    for mention in vocabulary(catalogue).mentions(bare, 0, len(bare)):
        if mention.kind in kinds:
            return f"holds {mention.text!r}, which leaves open what it says; leave it out"
    return None


def _problem(key: str, words: str, house: HouseStyle, catalogue: Catalogue) -> str | None:
    """Return what is wrong with a sentence and ours."""
    kinds = _OPEN if words else _UNSURE
    problem = _problem_of_key(key, house) or _doubt_of(key, catalogue, kinds) or _problem_of_slots(key, words)
    if problem is None and not words:
        problem = _problem_of_silence(key, catalogue)
    if problem is not None or not words:
        return problem
    if "?" in key:
        return "asks; leave it out"
    problems = (
        _problem_of_words(theirs, ours, catalogue, has_number="#" in words)
        for theirs, ours in _samples(key, words, house)
    )
    return next(filter(None, problems), None)


def _problem_of_key(key: str, house: HouseStyle) -> str | None:
    """Say that a sentence is a single word, or has values of no name."""
    if len(_PIECES.findall(key)) < 2 or not _LETTERS.search(key) or "\n" in key:
        return "is no whole sentence or line; teach a word as a synonym"
    names = {kind for kind, _ in slots(key)} - {NUMBER, WORDS}
    if unnamed := sorted(names - house.values.keys()):
        return f"has a slot {{{unnamed[0]}}}, of which no values are given; add them to values"
    return None


def _problem_of_silence(key: str, catalogue: Catalogue) -> str | None:
    """Say that a sentence that is to say nothing opens a part of a report, or tells something with us."""
    label = tuple(_LETTERS.findall(key.lower()))
    is_heading = label in grammar().headings and not slots(key)
    if is_heading or _opens_examination(set(label)):
        return "opens a part of a report with us, and is to say nothing; teach it as a heading"
    for subtask, values in _values(key.replace("#", _SAMPLE), catalogue).items():
        return f"tells {subtask} {', '.join(sorted(values))} with us, and is to say nothing; say what it says"
    return None


def _problem_of_slots(key: str, words: str) -> str | None:
    """Say that ours has a slot that theirs has not, or takes one of several without saying which."""
    theirs, ours = slots(key), slots(words)
    if re.search(r"[^\W_]#", key):
        return "has a # right behind a letter; write the digits of a name"
    if re.search(r"#\d|\{[a-z]*\d", key):
        return "has a slot with a number; only those of ours have one"
    if mixed := [kind for kind in dict(ours) if {(kind, True), (kind, False)} <= numbering(words)]:
        return f"has slots of {words!r} with a number and without; number all, e.g. {_slot(mixed[0], 1)}"
    if missing := sorted(set(ours) - set(theirs)):
        return f"has no slot for {_slot(*missing[0])} of {words!r}; write as many in it as in ours"
    for kind in dict(theirs):
        count, taken = ([slot for slot, _ in side].count(kind) for side in (theirs, ours))
        if taken != count and (kind, False) in numbering(words):
            return f"has {count} slots and {words!r} {taken}; number those of ours, e.g. {_slot(kind, count)}"
    return None


def _twice(pairs: Mapping[str, str]) -> str | None:
    """Return a key that is another one in other letters and says something else."""
    words_of: dict[str, str] = {}
    for key, words in pairs.items():
        folded = " ".join(key.casefold().split()).rstrip(".")
        if words_of.setdefault(folded, words) != words:
            return folded
    return None


def _slot(kind: str, number: int) -> str:
    return f"#{number}" if kind == NUMBER else f"{{{kind}{number}}}"


def _samples(key: str, words: str, house: HouseStyle) -> Iterator[tuple[str, str]]:
    """Yield theirs and ours with contents in their slots, so that each value is tried once.

    None where ours takes words over that are not known before.
    """
    key_slots = slots(key)
    if any(kind == WORDS for kind, _ in slots(words)):
        return
    choices = {kind: list(house.values[kind].items()) for kind, _ in key_slots if kind not in (NUMBER, WORDS)}
    for turn in range(max(map(len, choices.values()), default=1)):
        theirs = {slot: _SAMPLE if slot[0] == NUMBER else "" for slot in key_slots}
        ours = dict(theirs)
        for slot in key_slots:
            if values := choices.get(slot[0]):
                theirs[slot], ours[slot] = values[turn % len(values)]
        yield filled(key, theirs), filled(words, ours)


def _problem_of_words(theirs: str, ours: str, catalogue: Catalogue, *, has_number: bool) -> str | None:
    """Say that ours is not understood, or tells nothing, or that theirs is read otherwise."""
    if not ours:
        return None
    if unknown := next(iter(unknown_words(ours, catalogue).values()), None):
        return f"is to say {ours!r}, of which {unknown!r} is not understood; say it as in: RV size normal."
    values = _values(ours, catalogue)
    # What a number tells depends on it, and a line of details tells nothing by itself.
    if not values and not has_number and not _names_any(ours, catalogue):
        return f"is to say {ours!r}, of which no answer is read; say it as in: RV size normal., or ''"
    for subtask, read in _values(theirs, catalogue).items():
        if not read <= values.get(subtask, read):
            answer = f"{subtask} {', '.join(sorted(read))}"
            return f"is read by us as {answer}, and is to say {ours!r}; leave it out, or correct it"
    return None


def _names_any(text: str, catalogue: Catalogue) -> bool:
    """Return whether a text names a place, or a finding or structure of ours."""
    mentions = vocabulary(catalogue).mentions(text, 0, len(text))
    return any(mention.kind in ("place", "name", "state", "structure") for mention in mentions)


def _values(text: str, catalogue: Catalogue) -> dict[str, frozenset[str]]:
    """Return the values that the words of a text tell for certain, by subtask; its numbers are samples."""
    values: dict[str, set[str]] = {}
    for statement in extract(f"{text}.", None, catalogue):
        is_clear = statement.certainty == "certain" and not statement.doubt and not statement.measured
        if is_clear and statement.value is not None:
            values.setdefault(statement.subtask, set()).add(statement.value)
    return {subtask: frozenset(texts) for subtask, texts in values.items()}
