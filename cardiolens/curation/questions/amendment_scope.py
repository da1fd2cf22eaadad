"""Scope of an amendment: the answers that an addendum may change, or all where it cannot be told.

It may change those of the parts that it names. A part is a sequence, or the ventricles, the atria, the valves
or the pericardium of the cine images: sides and walls are mixed up within a part, and what is measured of one
ventricle is measured of both. Where an addendum says that all else stands, traits are parts of their own.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from cardiolens.curation.questions.extent import places_named
from cardiolens.curation.questions.standing_text import Stands, what_stands
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


def subtasks_named(note: str, catalogue: Catalogue) -> frozenset[str]:
    """Return the subtasks whose answers an addendum may change.

    It may change all where it speaks of sides, of columns, of a patient, or of a sentence or a finding
    without its name, and where it names a place, or nothing of this heart, and no part. The diagnosis rests
    on all that it may change, but not on another organ.
    """
    every = frozenset(catalogue.subtasks)
    if has(words()["amendments"]["of_all"], note):
        return every
    sentences = list(_sentences(note))
    standing = {stands for sentence in sentences if (stands := what_stands(sentence))}
    said = [sentence for sentence in sentences if what_stands(sentence) is None]
    named: set[str] = set()
    is_open = False
    for sentence in said:
        parts = _parts_said(sentence, catalogue)
        is_of_other = _is_of_other(sentence, catalogue)
        is_harmless = bool(standing) and not parts and _is_of_organ(sentence, catalogue)
        has_place = bool(places_named(sentence)) and not parts and not named
        if (_leaves_open(sentence, parts) or has_place) and not is_harmless:
            return every
        is_open = is_open or not (parts or is_of_other)
        named |= _subtasks(sentence, parts, catalogue, is_rest_told=Stands.REST in standing)
    is_whole = Stands.WHOLE in standing
    if is_open and not named and not is_whole:
        return every
    is_diagnosis_kept = any(
        what_stands(sentence) and has(words()["amendments"]["conclusion"], sentence) for sentence in sentences
    )
    if any(_concerns_diagnosis(sentence, catalogue) for sentence in said):
        is_diagnosis_kept = False
    elif not named:
        is_diagnosis_kept = is_whole or all(_is_apart(sentence, catalogue) for sentence in said)
    return frozenset(named | (set() if is_diagnosis_kept else _of_diagnosis(catalogue)))


def _parts_said(sentence: str, catalogue: Catalogue) -> set[str]:
    is_of_other = _is_of_other(sentence, catalogue)
    by_stem = set() if is_of_other else set(_parts_by_stem(sentence, catalogue))
    return {*_parts_of(sentence, catalogue)} | by_stem


def subtasks_beside(correction: str, phrase: str, catalogue: Catalogue) -> frozenset[str]:
    """Return the subtasks that a spoken correction may change: of the parts that a phrase around it names.

    All if it names none, or if the correction itself gives a place of a finding that it leaves out.
    """
    parts = {*_parts_of(phrase, catalogue), *_parts_by_stem(phrase, catalogue)}
    parts |= {part for part, stem in words()["amendments"]["stems"].items() if has(stem, phrase)}
    is_bare = bool(places_named(correction)) and not set(_parts_of(correction, catalogue))
    if not parts or is_bare:
        return frozenset(catalogue.subtasks)
    return frozenset(_of_parts(parts, catalogue) | _of_diagnosis(catalogue))


def _of_parts(parts: Collection[str], catalogue: Catalogue) -> set[str]:
    return {
        subtask.id
        for subtask in catalogue.subtasks.values()
        if subtask.sequence != "multi" and part_of(subtask) in parts
    }


def _of_diagnosis(catalogue: Catalogue) -> set[str]:
    return {subtask.id for subtask in catalogue.subtasks.values() if subtask.sequence == "multi"}


def _subtasks(sentence: str, parts: Collection[str], catalogue: Catalogue, *, is_rest_told: bool) -> set[str]:
    """Return the subtasks of parts; those of the traits that a sentence names where all else stands."""
    whole = _of_parts(parts, catalogue)
    traits = set(_traits_of(sentence, catalogue)) if is_rest_told else set()
    cine = {subtask.id for subtask in catalogue.subtasks.values() if subtask.sequence == "cine"}
    fields = {catalogue[gate].field for gate in traits}
    narrow = {
        subtask.id
        for subtask in catalogue.subtasks.values()
        if subtask.field in fields or (subtask.parent in traits)
    }
    is_narrower = (
        bool(traits) and narrow & cine <= whole and not has(words()["amendments"]["contours"], sentence)
    )
    return (whole - cine) | narrow if is_narrower else whole


def _traits_of(sentence: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield the questions on the traits of the ventricles that a sentence names, each with its structure."""
    lexicon = catalogue.lexicons["cine"]
    mentions = reader(lexicon).mentions(sentence, 0, len(sentence))
    structures = {name for mention in mentions if mention.kind == "structure" for name in mention.names}
    for mention in mentions:
        if mention.kind not in ("name", "state") or mention.trait not in lexicon.traits:
            continue
        of = lexicon.traits[mention.trait].of
        fields = {
            scale.field for name, scale in of.items() if scale and (name in structures or not structures)
        }
        yield from (one.id for one in catalogue.subtasks.values() if one.field in fields)


def _concerns_diagnosis(sentence: str, catalogue: Catalogue) -> bool:
    """Return whether a sentence may change a diagnosis by its own words."""
    has_disease = any(
        mention.kind == "disease" for mention in vocabulary(catalogue).mentions(sentence, 0, len(sentence))
    )
    return has_disease or has(words()["amendments"]["of_diagnosis"], sentence)


def _is_apart(sentence: str, catalogue: Catalogue) -> bool:
    """Return whether a sentence is of another organ, or of whom a report was sent to."""
    return _is_of_organ(sentence, catalogue) or has(words()["amendments"]["said_to"], sentence)


def _is_of_organ(sentence: str, catalogue: Catalogue) -> bool:
    organs = words()["amendments"]["organs"]
    return vocabulary(catalogue).names_other_organ(sentence, 0, len(sentence)) or has(organs, sentence)


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
