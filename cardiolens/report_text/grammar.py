"""Report English: cues, grades, headings and connectives, loaded from grammar.yaml."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.protocol.tasks.lexicon import Phrase, Tag, phrases
from cardiolens.study.anatomy import read_yaml

_CUES = (
    *("negated", "prefix", "negated_behind", "uncertain", "uncertain_behind"),
    *("historical", "lasting", "hypothetical", "technique", "contrasts"),
    *("exceptions", "sparing", "spared", "neutral"),
)
_FAMILIES = {"predicates": "predicate", "grades": "grade", "connectives": ""}


@dataclass(frozen=True)
class Grammar:
    """Phrases of report English by function, shared by all sequences."""

    tags: Mapping[Phrase, Tag]
    aliases: Mapping[str, Phrase]  # short forms of notes
    headings: Mapping[Phrase, str]  # a sequence, "silent", "silent_line", or "any"
    examinations: Mapping[str, Mapping[str, frozenset[str]]]  # "earlier" and "current": words of such a label
    concluding: frozenset[str]  # headings that come behind the findings
    labels: frozenset[str]  # words of labels that name a part of the heart, and end a silent line
    ventricles: frozenset[Phrase]  # labels above the lines of a form on one ventricle
    properties: frozenset[str]  # words of the labels of such lines
    of_cine: frozenset[str]  # words of lines of their own that end a section of another sequence
    owned: Mapping[str, tuple[str, ...]]  # beginnings of words that keep a line in a section
    fillers: frozenset[Phrase]  # phrases that a sentence may hold without a change of what it says
    plain: frozenset[str]  # words without meaning here, one letter away from words with one


@functools.cache
def grammar() -> Grammar:
    """Load the packaged grammar once."""
    tree = read_yaml(Path(__file__).parent / "grammar.yaml")
    headings = {phrase: name for name, forms in tree["sections"].items() for phrase in phrases(forms)}
    fillers = frozenset(phrases(tree["fillers"]))
    examinations = {
        when: {kind: frozenset(words) for kind, words in kinds.items()}
        for when, kinds in tree["examinations"].items()
    }
    return Grammar(
        dict(_tags(tree)),
        {short: tuple(words.split()) for short, words in tree["aliases"].items()},
        headings,
        examinations,
        frozenset(tree["concluding"]),
        frozenset(tree["labels"]),
        frozenset(phrases(tree["ventricles"])),
        frozenset(tree["properties"]),
        frozenset(tree["of_cine"]),
        {section: tuple(stems) for section, stems in tree["owned"].items()},
        fillers,
        frozenset(tree["plain"]),
    )


def _tags(tree: Mapping[str, Any]) -> Iterator[tuple[Phrase, Tag]]:
    for family, kind in _FAMILIES.items():
        for name, forms in tree[family].items():
            yield from ((phrase, Tag(kind or name, name)) for phrase in phrases(forms))
    yield from ((phrase, Tag("disease", "disease")) for phrase in phrases(tree["diseases"]))
    yield from ((phrase, Tag("structure", "other")) for phrase in phrases(tree["other_organs"]))
    yield from ((phrase, Tag("hypothetical", "relatives")) for phrase in phrases(tree["relatives"]))
    for cue in _CUES:
        yield from ((phrase, Tag(cue, cue)) for phrase in phrases(tree[cue]))
