"""Lexicons of report text: a protocol's data file, loaded and checked.

In patterns of phrases `[x]` is optional, `(x|y)` is a choice.
"""

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, TypeAdapter

from cardiolens.base.errors import InputError
from cardiolens.config.base import describe
from cardiolens.study.anatomy import read_yaml

Phrase = tuple[str, ...]  # words in lower case

ANY = "any"
"""Key of entries that apply to every structure, or to every grade."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Meaning of a phrase: its kind, and a name within that kind."""

    kind: str  # structure, place, name, state, neutral, or a kind of the grammar
    name: str
    trait: str = ""  # of names and states


@dataclass(frozen=True)
class Scale:
    """Field values for the states of one trait of one structure."""

    field: str
    normal: str
    states: Mapping[str, Mapping[str, str | None]]  # by state, then by grade
    ranges: Mapping[str, tuple[tuple[float | None, str], ...]]  # by unit: upper limits, exclusive

    def value(self, state: str, grade: str) -> str | None:
        """Return the option that a state and its grade assert; None if they assert none."""
        if state == "normal":
            return self.normal
        graded = self.states.get(state, {})
        return graded.get(grade, graded.get(ANY))


def _with_states(entry: object) -> object:
    """Gather the states of a scale, which stand beside its other keys; a state may have no grades."""
    if not isinstance(entry, dict):
        return entry
    own = {"ranges": {}} | {key: entry[key] for key in ("field", "normal", "ranges") if key in entry}
    states = {
        state: value if isinstance(value, dict) else {ANY: value}
        for state, value in entry.items()
        if state not in own
    }
    return own | {"states": states}


class Combination(NamedTuple):
    """The value of a field where several places are present."""

    field: str
    all: frozenset[str]
    value: str


@dataclass(frozen=True)
class Trait:
    """A property of structures in reports, and the fields that report its places."""

    of: Mapping[str, Annotated[Scale | None, BeforeValidator(_with_states)]]
    """By structure, or ANY; None: the structure lacks it."""
    default: str | None = None
    places: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by field, then by place
    combined: tuple[Combination, ...] = ()
    percent: Mapping[str, tuple[tuple[float, str | None], ...]] = field(default_factory=dict)
    """Places renamed by a percentage."""
    bearers: frozenset[str] = frozenset()  # structures whose places are reported; empty: all
    strict: bool = False  # whether a named structure without a scale rules the default out

    bare_unit: str | None = None  # of a number without a unit right after the name
    implied_by: str | None = None  # a number in this unit after a place implies the trait

    def scale(self, structure: str) -> Scale | None:
        """Return the scale of a structure; None if it has none."""
        return self.of.get(structure, None if structure == "other" else self.of.get(ANY))


_TRAITS = TypeAdapter(dict[str, Trait])


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The lexicon for reports of one sequence."""

    sequence: str
    tags: Mapping[Phrase, Tag]
    aliases: Mapping[str, Phrase]
    groups: Mapping[str, tuple[str, ...]]  # names for several structures
    traits: Mapping[str, Trait]
    wholes: Mapping[str, Mapping[str, str]]  # by structure: field values when it is called normal
    foreign: frozenset[Phrase]  # state phrases of all sequences
    headings: Mapping[Phrase, str] = field(default_factory=dict)  # of a group: the section that each opens
    synonyms: Mapping[Phrase, Phrase] = field(default_factory=dict)  # of a group: phrases of this lexicon


def load_lexicon(path: Path, sequence: str, fields: Mapping[str, Collection[str]]) -> Lexicon:
    """Load the lexicon of one sequence; `fields` are the option texts of each report field.

    InputError names a missing key, a malformed phrase, or a field or text that no report has.
    """
    tree = read_yaml(path)
    try:
        sequence_tree = tree["sequences"][sequence]
        lexicon = Lexicon(
            sequence=sequence,
            tags=dict(_tags(tree, sequence_tree)),
            aliases={short: tuple(words.split()) for short, words in tree.get("aliases", {}).items()},
            groups={name: tuple(members) for name, members in tree.get("groups", {}).items()},
            traits=_TRAITS.validate_python(sequence_tree["traits"]),
            wholes=sequence_tree.get("wholes", {}),
            foreign=frozenset(_found(tree)),
        )
    except KeyError as error:
        raise InputError(
            f"{path}: {error} is missing; the reports of {sequence!r} need sequences.{sequence} with "
            "traits, each with `of` and states"
        ) from None
    except (TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"{path}: words of {sequence!r} cannot be used ({describe(error)}); correct them"
        ) from None
    for name, value in _said(lexicon):
        if value not in fields.get(name, ()):
            raise InputError(
                f"{path}: {sequence}: no report has {value!r} as {name!r}; use the option texts of "
                f"{', '.join(fields)}"
            )
    return lexicon


def _said(lexicon: Lexicon) -> Iterator[tuple[str, str]]:
    """Yield every (field, option text) that a lexicon can assert."""
    for entry in lexicon.traits.values():
        for scale in filter(None, entry.of.values()):
            graded = chain.from_iterable(values.values() for values in scale.states.values())
            ranged = (value for limits in scale.ranges.values() for _, value in limits)
            yield from ((scale.field, value) for value in (scale.normal, *graded, *ranged) if value)
        yield from ((name, value) for name, values in entry.places.items() for value in values.values())
        yield from ((name, value) for name, _, value in entry.combined)
    yield from chain.from_iterable(values.items() for values in lexicon.wholes.values())


def _tags(tree: Mapping[str, Any], sequence_tree: Mapping[str, Any]) -> Iterator[tuple[Phrase, Tag]]:
    """Yield phrases with their meanings; a later entry overrides an earlier one."""
    for words in (tree, sequence_tree):
        for kind in ("structure", "place"):
            for name, forms in words.get(f"{kind}s", {}).items():
                yield from ((phrase, Tag(kind, name)) for phrase in phrases(forms))
    for name, entry in sequence_tree["traits"].items():
        yield from ((phrase, Tag("name", "", name)) for phrase in phrases(entry.get("names", ())))
        for state, forms in entry["states"].items():
            yield from ((phrase, Tag("state", state, name)) for phrase in phrases(forms))
    yield from ((phrase, Tag("neutral", "")) for phrase in phrases(sequence_tree.get("neutral", ())))


def _found(tree: Mapping[str, Any]) -> Iterator[Phrase]:
    for sequence in tree["sequences"].values():
        for entry in sequence["traits"].values():
            yield from chain.from_iterable(phrases(forms) for forms in entry["states"].values())


_PIECE = re.compile(r"[\[\]()|]|[^\[\]()|]+")
_CLOSING = {"[": "]", "(": ")"}


def phrases(forms: Iterable[str]) -> Iterator[Phrase]:
    """Yield every phrase that the patterns expand to."""
    for text in forms:
        yield from _expanded(text)


@functools.lru_cache(maxsize=4096)
def _expanded(text: str) -> tuple[Phrase, ...]:
    if len(text) == 1:  # a lone bracket or bar is literal
        return ((text,),)
    try:
        every = _alternatives(iter(_PIECE.findall(text.lower())))
    except ValueError:
        raise ValueError(f"{text!r} has a bracket that nothing closes or opens") from None
    return tuple(dict.fromkeys(phrase for phrase in every if phrase))


def _alternatives(pieces: Iterator[str], closing: str = "") -> list[Phrase]:
    """Return the phrases of the pieces up to a closing bracket; without one, of all."""
    done, begun, end = list[Phrase](), [Phrase()], ""
    for piece in pieces:
        if piece in _CLOSING.values():
            end = piece
            break
        if piece == "|":
            done, begun = done + begun, [Phrase()]
        else:
            words = [tuple(piece.replace("-", " ").split())]
            inner = _alternatives(pieces, _CLOSING[piece]) if piece in _CLOSING else words
            choices = [Phrase(), *inner] if piece == "[" else inner
            begun = [first + more for first in begun for more in choices]
    if end != closing:
        raise ValueError("brackets do not match")
    return done + begun
