"""Subjects of findings: the structure beside them, in their clause, or named before."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cardiolens.protocol.tasks.lexicon import ANY, Trait
from cardiolens.report_text.clauses import Clause
from cardiolens.report_text.mentions import Mention

Names = tuple[str, ...]

_BEFORE = frozenset({"grade", "predicate", "place", "name", "state", "word", "neutral"})
_AFTER = frozenset({"grade", "predicate", "name", "place"})
_LINKS = frozenset(
    {"of", "the", "in", "into", "involving", "from", "beyond", "below", "within", "at", "a", "an"}
)


def subjects(clause: Clause, at: int, entry: Trait, context: Sequence[Names]) -> Names:
    """Return the structures of the finding at a position of a clause; empty if none of them is reported.

    `context` holds the structures named earlier, the latest first.
    """
    neighbours = _beside(clause.mentions, at)
    if neighbours is not None:
        return _accepted(neighbours, entry)
    for mention in _nearest(clause, at):
        if accepted := _accepted(mention, entry):
            return accepted
        if entry.strict:
            return ()
    return _inherited(entry, context)


def is_named(clause: Clause, at: int, entry: Trait, context: Sequence[Names]) -> bool:
    """Return whether words name the structure of a finding, in its clause or before."""
    return bool({*subjects(clause, at, replace(entry, default=None), context)} - {ANY})


def _inherited(entry: Trait, context: Sequence[Names]) -> Names:
    for names in context:
        if accepted := _accepted(names, entry):
            return accepted
        if entry.strict and "other" in names:
            return ()
    return (entry.default,) if entry.default else (ANY,) if ANY in entry.of else ()


def _accepted(names: Names, entry: Trait) -> Names:
    return tuple(name for name in names if entry.scale(name))


def _beside(mentions: Sequence[Mention], at: int) -> Names | None:
    before = _first(reversed(mentions[:at]), _BEFORE, frozenset())
    return before or _first(mentions[at + 1 :], _AFTER, _LINKS)


def _first(mentions: Iterable[Mention], kinds: frozenset[str], words: frozenset[str]) -> Names | None:
    """Return the first structure with only mentions of some kinds, or some words, before it."""
    for mention in mentions:
        if mention.kind == "structure":
            return mention.names
        if mention.kind not in kinds and mention.text not in words:
            return None
        if mention.kind == "word" and not words and mention.text in _LINKS:
            return None
    return None


def _nearest(clause: Clause, at: int) -> list[Names]:
    """Return the structures of a clause: those before a position, nearest first, then those after it."""
    structures = clause.of_kind("structure")
    order = sorted(structures, key=lambda place: (place > at, abs(place - at)))
    return [clause.mentions[place].names for place in order]
