"""Scope of an amendment: the parts of a report that an addendum names, or all where it cannot be told.

A part is a sequence, or the ventricles, the atria, the valves or the pericardium of the cine images: sides
and walls are mixed up within a part, and what is measured of one ventricle is measured of both.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from cardiolens.curation.questions.extent import places_named
from cardiolens.curation.questions.strict_patterns import has, words
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.report_text.mentions import Mention, reader
from cardiolens.report_text.understanding import vocabulary

_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("lv", "rv"), "ventricles"),
    **dict.fromkeys(("la", "ra"), "atria"),
    **dict.fromkeys(("mitral", "tricuspid", "aortic", "lvot"), "valves"),
    "pericardium": "pericardium",
}
_OF_SUBTASK: Mapping[str, str] = {"C16": "atria", "C17": "valves", "C18": "valves", "C19": "pericardium"}
_WALLS = frozenset({"wall", "walls", "free wall"})  # name a place beside a finding of another part
_HEAD = re.compile(r"^[^\w]*(?:[^:.\n]{0,80}?:\s*|[A-Za-z]+\W*$)")
_END = re.compile(r"[.;!?](?=\s|$)|\n")


def part_of(subtask: Subtask) -> str:
    """Return the part of a report that a question asks about."""
    return _OF_SUBTASK.get(subtask.id, "ventricles") if subtask.sequence == "cine" else subtask.sequence


def parts_named(note: str, catalogue: Catalogue) -> frozenset[str] | None:
    """Return the parts that an addendum may change; None if it may change any.

    It may where it speaks of sides, of columns, of a patient, or of a sentence or a finding without its name,
    and where it names a place, or nothing of this heart, and no part.
    """
    if has(words()["amendments"]["of_all"], note):
        return None
    parts: set[str] = set()
    is_open = False
    for sentence in _sentences(note):
        is_of_other = _is_of_other(sentence, catalogue)
        named = set(_parts_of(sentence, catalogue)) | (
            set() if is_of_other else set(_parts_by_stem(sentence, catalogue))
        )
        if _leaves_open(sentence, named) or (places_named(sentence) and not named and not parts):
            return None
        is_open = is_open or not (named or is_of_other)
        parts |= named
    return None if is_open and not parts else frozenset(parts)


def _leaves_open(sentence: str, named: Collection[str]) -> bool:
    """Return whether a sentence is of a finding, a side or words of the report that it does not name."""
    rules = words()["amendments"]
    if any(has(pattern, sentence) for pattern in words()["own_words"].values()):
        return False
    points = bool(named) and has(rules["pointing"], sentence) and not has(rules["structures"], sentence)
    return points or has(rules["unnamed"], sentence)


def _sentences(note: str) -> Iterator[str]:
    """Yield what an addendum says, without its heading."""
    start = 0
    for match in [*_END.finditer(note), None]:
        sentence = note[start : match.start() if match else len(note)]
        start = match.end() if match else len(note)
        head = _HEAD.match(sentence)
        said = sentence[head.end() :] if head and has(words()["amendments"]["note"], head[0]) else sentence
        if re.search(r"[^\W\d_]", said):
            yield said


def _parts_of(sentence: str, catalogue: Catalogue) -> Iterator[str]:
    for sequence, lexicon in catalogue.lexicons.items():
        mentions = reader(lexicon).mentions(sentence, 0, len(sentence))
        found = [
            mention
            for mention in mentions
            if mention.kind in ("name", "state") and mention.text not in _WALLS
        ]
        if sequence == "cine":
            yield from _parts_of_cine(mentions, found, catalogue)
        elif found:
            yield sequence


def _parts_by_stem(sentence: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield the parts of words that no lexicon has: `recontoured`; a bright area may be of any images."""
    rules = words()["amendments"]
    for gate, pattern in words()["unread"].items():
        if gate in catalogue.subtasks and has(pattern, sentence):
            yield part_of(catalogue[gate])
    if has(rules["contours"], sentence):
        yield from ("ventricles", "atria")
    if has(rules["of_signal"], sentence) and not any(
        has(own, sentence) for own in words()["own_words"].values()
    ):
        yield from words()["own_words"]


def _parts_of_cine(mentions: list[Mention], found: list[Mention], catalogue: Catalogue) -> Iterator[str]:
    """Yield the parts whose structures are named, and those that a finding without one may be of."""
    structures = {name for mention in mentions if mention.kind == "structure" for name in mention.names}
    yield from (_PARTS[name] for name in structures if name in _PARTS)
    traits = catalogue.lexicons["cine"].traits
    for mention in found:
        of = traits[mention.trait].of if mention.trait in traits else {}
        if structures.isdisjoint(of):
            fields = {scale.field for scale in of.values() if scale}
            yield from (part_of(one) for one in catalogue.subtasks.values() if one.field in fields)


def _is_of_other(sentence: str, catalogue: Catalogue) -> bool:
    """Return whether a sentence is of another organ or examination, or of a disease."""
    if has(words()["amendments"]["of_other"], sentence):
        return True
    roles = vocabulary(catalogue)
    span = sentence, 0, len(sentence)
    return roles.names_other_organ(*span) or any(
        mention.kind == "disease" for mention in roles.mentions(*span)
    )
