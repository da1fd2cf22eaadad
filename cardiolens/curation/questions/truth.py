"""Truth of a report by one extractor: an answer per subtask, or the reason why there is none (protocol 9)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cardiolens.curation.questions.completeness import Report
from cardiolens.curation.questions.reasons import Reason
from cardiolens.curation.questions.statement import Found
from cardiolens.curation.questions.strict_patterns import words
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask

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
    report = Report(text, found)
    for subtask in catalogue.subtasks.values():
        own = [
            one for one in found if one.subtask == subtask.id and one.certainty in ("certain", "uncertain")
        ]
        if subtask.answer_type == "report" or not any(one.subtask == subtask.id for one in found):
            continue
        if not own:
            told.undetermined[subtask.id] = Reason.NOT_TODAY
            continue
        outcome = _outcome(report, subtask, own)
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


def _outcome(report: Report, subtask: Subtask, own: Sequence[Found]) -> Answer | str:
    """Option keys, or the reason why there are none."""
    certain = [one for one in own if one.certainty == "certain"]
    stated = [one for one in certain if not one.measured]
    if reason := _doubt(subtask, stated) or report.lacks(subtask, own, stated):
        return reason
    values = tuple(dict.fromkeys(one.value for one in stated if one.value is not None and not one.doubt))
    kept = _one(values, subtask)
    if isinstance(kept, str):
        return kept
    if report.lacks_parts(subtask):
        return Reason.PART_NOT_TOLD
    if subtask.id == "C06" and report.tells_worse(subtask, kept):
        return Reason.SEVERAL_VALUES
    if not kept and report.has_unread_words(subtask):
        return Reason.NUMBER_AGAINST_WORDS
    return _with_numbers(subtask, kept, [one for one in certain if one.measured])


def _doubt(subtask: Subtask, stated: Sequence[Found]) -> str | None:
    """The doubt of a finding that nothing settles; a part that is denied leaves the rest as it is told."""
    normal = {option.text for option in subtask.options if option.normal}
    partial = {Reason.DENIED_IN_PART, Reason.QUALIFIED_DENIAL}
    told = [one for one in stated if one.value not in normal and not one.doubt]
    for one in stated:
        if one.doubt and not (one.doubt in partial and told):
            return one.doubt
        if one.doubt and _denies(one, told):
            return Reason.CONTRADICTION
    return None


def _denies(denial: Found, told: Sequence[Found]) -> bool:
    """Return whether a denial of a kind may be of what is told: of that kind, of none, or of all."""
    kinds, others = _kinds([denial]), _kinds(told)
    more = re.search(r"\b(or|nor|and)\b", denial.quote, re.IGNORECASE)
    return bool(kinds) and (bool(kinds & others) or not others or more is not None)


def _kinds(stated: Sequence[Found]) -> set[str]:
    """Kinds of a finding, such as `focal`, that statements name."""
    written = " ".join(one.quote for one in stated)
    return {kind.lower() for kind in re.findall(words()["kind"], written, re.IGNORECASE)}


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
