"""Truth of a report by one extractor: an answer per subtask, or the reason why there is none (protocol 9)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cardiolens.judging.text.sections import sentences
from cardiolens.questions.found import Found
from cardiolens.questions.reasons import Reason
from cardiolens.questions.rules import sentence_at, words
from cardiolens.tasks.catalogue import Catalogue, Subtask

Answer = tuple[str, ...]  # option keys


@dataclass(slots=True)
class Told:
    """What one extractor makes of a report; a subtask in neither part is not mentioned."""

    answers: dict[str, Answer] = field(default_factory=dict)
    undetermined: dict[str, str] = field(default_factory=dict)  # a Reason, by subtask
    evidence: dict[str, tuple[int, ...]] = field(default_factory=dict)  # places among the findings


def settle(text: str, found: Sequence[Found], catalogue: Catalogue) -> Told:
    """The answers of a report; indeterminate is not absent, and what is not mentioned has no answer."""
    told = Told()
    report = _Report(text, found)
    for subtask in catalogue.subtasks.values():
        own = [
            one for one in found if one.subtask == subtask.id and one.certainty in ("certain", "uncertain")
        ]
        if subtask.answer_type == "report" or not any(one.subtask == subtask.id for one in found):
            continue
        if not own:
            told.undetermined[subtask.id] = Reason.NOT_TODAY
            continue
        outcome = report.outcome(subtask, own)
        if isinstance(outcome, str):
            told.undetermined[subtask.id] = outcome
        else:
            told.answers[subtask.id] = outcome
        told.evidence[subtask.id] = tuple(place for place, one in enumerate(found) if one in own)
    _close(told, catalogue)
    return told


def _close(told: Told, catalogue: Catalogue) -> None:
    """Take back the answers whose parent has none, or not the one that they need."""
    for subtask in catalogue.subtasks.values():
        if subtask.parent is None or subtask.id not in told.answers:
            continue
        parent = told.answers.get(subtask.parent)
        if parent is None or not set(parent) & set(subtask.parent_answers):
            reason = Reason.PARENT_UNKNOWN if parent is None else Reason.AGAINST_TRUTH
            told.undetermined[subtask.id] = reason
            del told.answers[subtask.id]


@dataclass(frozen=True)
class _Report:
    text: str
    found: Sequence[Found]

    def outcome(self, subtask: Subtask, own: Sequence[Found]) -> Answer | str:
        """Option keys, or the reason why there are none."""
        certain = [one for one in own if one.certainty == "certain"]
        stated = [one for one in certain if not one.measured]
        if doubt := _doubt(subtask, stated):
            return doubt
        values = tuple(dict.fromkeys(one.value for one in stated if one.value is not None and not one.doubt))
        unsure = [one for one in own if one.certainty == "uncertain" and one.value not in values]
        if unsure:
            return Reason.UNCERTAIN
        if subtask.parent and (reason := self._places(subtask, stated)):
            return reason
        kept = _one(values, subtask)
        if isinstance(kept, str):
            return kept
        if reason := self._parts(subtask):
            return reason
        return _with_numbers(subtask, kept, [one for one in certain if one.measured])

    def _parts(self, subtask: Subtask) -> str | None:
        """Why a set of structures is not told whole: one of them is not mentioned."""
        needed: Mapping[str, str] = words()["parts"].get(subtask.id, {})
        certain = [one for one in self.found if one.subtask == subtask.id and one.certainty == "certain"]
        written = " ".join(one.quote for one in certain)
        return None if all(_has(part, written) for part in needed.values()) else Reason.PART_NOT_TOLD

    def _places(self, subtask: Subtask, stated: Sequence[Found]) -> str | None:
        """Why the places or patterns of a finding are not told whole."""
        pieces = list(sentences(self.text))
        gate = [one for one in self.found if one.subtask == subtask.parent and one.certainty == "certain"]
        anchored = {sentence_at(pieces, one.start) for one in gate if one.value is not None and not one.doubt}
        mine = {sentence_at(pieces, one.start) for one in stated}
        if subtask.tier == 1 and mine - anchored:
            return Reason.UNANCHORED
        if subtask.id in words()["places"]:
            for sentence in mine:
                written = self.text[sentence.start : sentence.end]
                levels = subtask.id in words()["levels"]
                open_range = _has(words()["range_of_levels" if levels else "range_of_walls"], written)
                if levels and _has(words()["apical_or_apex"], written):
                    return Reason.RANGE_OF_PLACES
                if open_range and not (levels and _has(words()["neighbours"], written)):
                    return Reason.RANGE_OF_PLACES
        family = words()["details"].get(subtask.parent, [])
        detailed = {
            sentence_at(pieces, one.start)
            for one in self.found
            if one.subtask in family and one.certainty == "certain"
        }
        lacking = [
            one for one in detailed - mine if not _has(words()["concluding"], self.text[one.start : one.end])
        ]
        return Reason.INCOMPLETE_PLACES if lacking else None


def _doubt(subtask: Subtask, stated: Sequence[Found]) -> str | None:
    """The doubt of a finding that nothing settles; a part that is denied leaves the rest as it is told."""
    normal = {option.text for option in subtask.options if option.normal}
    partial = {Reason.DENIED_IN_PART, Reason.QUALIFIED_DENIAL}
    told = [one for one in stated if one.value not in normal and not one.doubt]
    for one in stated:
        if one.doubt and not (one.doubt in partial and told):
            return one.doubt
    return None


def _one(values: tuple[str, ...], subtask: Subtask) -> tuple[str, ...] | str:
    """The values that may stand together."""
    normal = {option.text for option in subtask.options if option.normal}
    abnormal = tuple(value for value in values if value not in normal)
    parted = subtask.id in words()["parts"]
    if abnormal and len(abnormal) < len(values) and not parted:
        return Reason.CONTRADICTION
    kept = abnormal or values
    if subtask.answer_type == "multi" or len(kept) <= 1:
        return kept
    if subtask.id in words()["worst"]:
        texts = [option.text for option in subtask.options]
        return (max(kept, key=texts.index),)
    return Reason.SEVERAL_VALUES


def _with_numbers(subtask: Subtask, values: tuple[str, ...], numbers: Sequence[Found]) -> Answer | str:
    """The answer of words that no number contradicts, else that of numbers which agree."""
    told = {one.value for one in numbers if one.value is not None}
    if any(one.doubt for one in numbers):
        return next(str(one.doubt) for one in numbers if one.doubt)
    if values:
        allowed = [{one.value} if one.value else set(one.near) for one in numbers]
        against = [one for one in allowed if one and not one & set(values)]
        return Reason.NUMBER_AGAINST_WORDS if against else _keys(subtask, values)
    if len(told) != 1 or any(one.value is None and told.isdisjoint(one.near) for one in numbers):
        return Reason.SEVERAL_VALUES if len(told) > 1 else Reason.BETWEEN_GRADES
    return _keys(subtask, tuple(value for value in told if value))


def _keys(subtask: Subtask, values: tuple[str, ...]) -> Answer:
    return tuple(option.key for option in subtask.options if option.text in values)


def _has(pattern: str, written: str) -> bool:
    return re.search(pattern, written, re.IGNORECASE) is not None
