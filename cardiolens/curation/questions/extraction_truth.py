"""Truth of a report by one extractor: an answer per subtask, or why there is none (protocol 9)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cardiolens.curation.questions.completeness import Report
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.house_sentences import reword
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has, words
from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue, Subtask

Answer = tuple[str, ...]  # option keys
_PARTIAL = (Reason.DENIED_IN_PART, Reason.QUALIFIED_DENIAL)
_DENYING = (*_PARTIAL, Reason.CONTRADICTION)  # doubts of what denies a finding as well


@dataclass(slots=True)
class Extraction:
    """The answers of one extractor; a subtask in neither `answers` nor `undetermined` is not mentioned."""

    answers: dict[str, Answer] = field(default_factory=dict)
    undetermined: dict[str, str] = field(default_factory=dict)  # a Reason, by subtask
    evidence: dict[str, tuple[int, ...]] = field(default_factory=dict)  # places among the findings


def settle(text: str, statements: Sequence[ReportStatement], catalogue: Catalogue) -> Extraction:
    """Reduce statements to answers. Indeterminate is not absent; what is not mentioned has no answer."""
    extraction = Extraction()
    if any(statement.reading for statement in statements):
        text = reword(text, catalogue.house).text
        statements = [statement.as_read() for statement in statements]
    report = Report(text, statements, catalogue)
    for subtask in catalogue.subtasks.values():
        subtask_statements = [
            statement
            for statement in statements
            if statement.subtask == subtask.id and statement.certainty in ("certain", "uncertain")
        ]
        if subtask.answer_type in OPEN or not any(
            statement.subtask == subtask.id for statement in statements
        ):
            continue
        if not subtask_statements:
            extraction.undetermined[subtask.id] = Reason.NOT_TODAY
            continue
        outcome = _doubt_of_finding(subtask, statements, catalogue) or _outcome(
            report, subtask, subtask_statements
        )
        if isinstance(outcome, str):
            extraction.undetermined[subtask.id] = outcome
        else:
            extraction.answers[subtask.id] = outcome
        extraction.evidence[subtask.id] = tuple(
            place for place, statement in enumerate(statements) if statement in subtask_statements
        )
    _close(extraction, catalogue)
    return extraction


def _close(extraction: Extraction, catalogue: Catalogue) -> None:
    """Remove the answers whose parent has no answer, or not one that they depend on."""
    for subtask in catalogue.subtasks.values():
        if subtask.parent is None or subtask.id not in extraction.answers:
            continue
        parent = extraction.answers.get(subtask.parent)
        if parent is None or not set(parent) & set(subtask.parent_answers):
            reason = Reason.PARENT_UNKNOWN if parent is None else Reason.AGAINST_TRUTH
            extraction.undetermined[subtask.id] = reason
            del extraction.answers[subtask.id]


def _doubt_of_finding(
    subtask: Subtask, statements: Sequence[ReportStatement], catalogue: Catalogue
) -> str | None:
    """Return the doubt of a statement on the finding that a detail is of: it may be of one more."""
    if subtask.parent is None:
        return None
    normal = {option.text for option in catalogue[subtask.parent].options if option.normal}
    return next(
        (
            statement.doubt
            for statement in statements
            if statement.subtask == subtask.parent
            and (statement.certainty, statement.measured) == ("certain", False)
            and statement.doubt not in (None, *_PARTIAL)
            and statement.value not in normal
        ),
        None,
    )


def _outcome(report: Report, subtask: Subtask, statements: Sequence[ReportStatement]) -> Answer | str:
    """Return option keys, or the reason why there are none."""
    certain = [statement for statement in statements if statement.certainty == "certain"]
    stated = [statement for statement in certain if not statement.measured]
    if reason := _doubt(subtask, stated) or report.lacks(subtask, statements, stated):
        return reason
    values = tuple(
        dict.fromkeys(
            statement.value for statement in stated if statement.value is not None and not statement.doubt
        )
    )
    answer = _one(values, subtask)
    if isinstance(answer, str):
        return answer
    is_affirmed = subtask.id in words()["named"] and not _is_normal(answer, subtask)
    if report.unread.leave_open(subtask, is_affirmed=is_affirmed):
        return Reason.NOT_ALL_READ
    numbers = [statement for statement in certain if statement.measured]
    if reason := _unread(report, subtask, answer, numbers) or _contradiction(report, subtask, stated):
        return reason
    return _with_numbers(subtask, answer, numbers)


def _contradiction(report: Report, subtask: Subtask, stated: Sequence[ReportStatement]) -> str | None:
    return Reason.CONTRADICTION if report.denies_a_part(subtask, stated) else None


def _unread(
    report: Report, subtask: Subtask, answer: Answer, numbers: Sequence[ReportStatement]
) -> str | None:
    """Return why sentences that were not read may tell more than an answer, or another one."""
    if report.lacks_parts(subtask) or report.has_unread_part(subtask):
        return Reason.PART_NOT_TOLD
    if subtask.id == "C06" and report.tells_worse(subtask, answer):
        return Reason.SEVERAL_VALUES
    if report.is_denied_unread(subtask, answer or [number.value for number in numbers if number.value]):
        return Reason.CONTRADICTION
    is_unread = not answer and report.has_unread_words(subtask)
    return Reason.NUMBER_AGAINST_WORDS if is_unread else None


def _doubt(subtask: Subtask, stated: Sequence[ReportStatement]) -> str | None:
    """Return the doubt that no other statement resolves.

    A partial denial leaves other values valid, and a statement that may say what a clear one says is needed
    no more.
    """
    normal = {option.text for option in subtask.options if option.normal}
    abnormal_statements = [
        statement for statement in stated if statement.value not in normal and not statement.doubt
    ]
    clear = {statement.value for statement in stated if not statement.doubt}
    for statement in stated:
        if not statement.doubt or (statement.value in clear and statement.doubt not in _DENYING):
            continue
        if statement.doubt not in _PARTIAL or not abnormal_statements:
            return statement.doubt
        if _denies(statement, abnormal_statements) or _denies_all(statement):
            return Reason.CONTRADICTION
    return None


def _denies(denial: ReportStatement, statements: Sequence[ReportStatement]) -> bool:
    """Return whether a denial of a kind may apply to the abnormal statements."""
    kinds, other_kinds = _kinds([denial]), _kinds(statements)
    more = re.search(r"\b(or|nor|and)\b", denial.quote, re.IGNORECASE)
    return bool(kinds) and (bool(kinds & other_kinds) or not other_kinds or more is not None)


def _denies_all(denial: ReportStatement) -> bool:
    """Return whether only what stands before a denial limits it: `oedema of the septum, no oedema`.

    One of the left ventricle beside the right one is of a part.
    """
    is_of_part = has(words()["place"], denial.quote) or has(words()["left_heart"], denial.quote)
    return denial.doubt == Reason.DENIED_IN_PART and not is_of_part


def _is_normal(answer: Answer, subtask: Subtask) -> bool:
    return set(answer) <= {option.text for option in subtask.options if option.normal}


def _kinds(stated: Sequence[ReportStatement]) -> set[str]:
    """Return the kinds of a finding, such as `focal`, that statements name."""
    quotes = " ".join(statement.quote for statement in stated)
    return {kind.lower() for kind in re.findall(words()["kind"], quotes, re.IGNORECASE)}


def _one(values: tuple[str, ...], subtask: Subtask) -> tuple[str, ...] | str:
    """Return the values that may hold together, or the reason why they may not."""
    normal = {option.text for option in subtask.options if option.normal}
    abnormal = tuple(value for value in values if value not in normal)
    parted = subtask.id in words()["parts"]
    if abnormal and len(abnormal) < len(values) and not parted:
        return Reason.CONTRADICTION
    answer = abnormal or values
    if subtask.answer_type == "multi" or len(answer) <= 1:
        return answer
    if subtask.id in words()["worst"]:
        texts = [option.text for option in subtask.options]
        return (max(answer, key=texts.index),)
    return Reason.SEVERAL_VALUES


def _with_numbers(
    subtask: Subtask, values: tuple[str, ...], numbers: Sequence[ReportStatement]
) -> Answer | str:
    """Return the answer of words that no number contradicts, else that of agreeing numbers.

    A number in doubt counts only if it tells what nothing else does.
    """
    number_values = {number.value for number in numbers if number.value is not None}
    clear = set(values) | {number.value for number in numbers if not number.doubt}
    if doubts := [number.doubt for number in numbers if number.doubt and number.value not in clear]:
        return str(doubts[0])
    if values:
        allowed = [{number.value} if number.value else set(number.near) for number in numbers]
        against = [
            contradicted for contradicted in allowed if contradicted and not contradicted & set(values)
        ]
        return Reason.NUMBER_AGAINST_WORDS if against else _keys(subtask, values)
    if len(number_values) != 1 or any(
        number.value is None and number_values.isdisjoint(number.near) for number in numbers
    ):
        return Reason.SEVERAL_VALUES if len(number_values) > 1 else Reason.BETWEEN_GRADES
    return _keys(subtask, tuple(value for value in number_values if value))


def _keys(subtask: Subtask, values: tuple[str, ...]) -> Answer:
    return tuple(option.key for option in subtask.options if option.text in values)
