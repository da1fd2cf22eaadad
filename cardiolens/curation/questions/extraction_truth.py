"""Truth of a report by one extractor: an answer per subtask, or why there is none (protocol 9)."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.glossary import headings_of
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has, words
from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue, Subtask
from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.sections import Sentence, pieces_of, sentence_at

_LEVELS = {
    "Basal segment": r"\b(basal|base|basis)\b",
    "Mid segment": r"\bmid\b(?![- ]?(wall|myocard))|\bmid-?(ventric\w*|cavity|level)\b|\bmidventric\w*",
    "Apical segment": r"\b(apical|distal)\b(?!\s+cap)",
    "Apex": r"\bapex\b|\bapical cap\b",
}
_WALLS = {
    "Anterior wall": r"\bant(erior)?\b(?!\s+(sept|lat))",
    "Septal wall": r"\b(antero|infero)?-?\s?sept(al|um)?\b",
    "Inferior wall": r"\binf(erior)?\b(?!\s+(sept|lat))",
    "Lateral wall": r"\b(antero|infero)?-?\s?lat(eral)?\b",
}
_RIGHT = {"Right ventricular free wall": r"\b(rv|right ventric\w*)\b(?! (insertion|hinge|junction))"}
_ALL = r"\b(all|every|each|entire|whole|global\w*|circumferential\w*|throughout)\b"
_NUMBERS = r"\bseg(?:ment)?s?\b\.?\s*(?:aha\s*)?((?:\d{1,2}(?:\s*(?:,|and|&|/|to|-|–)\s*)?)+)"
_LEVEL_OF = ((1, 6, "Basal segment"), (7, 12, "Mid segment"), (13, 16, "Apical segment"), (17, 17, "Apex"))
_WALL_OF = {
    "Anterior wall": {1, 7, 13},
    "Septal wall": {2, 3, 8, 9, 14},
    "Inferior wall": {4, 10, 15},
    "Lateral wall": {5, 6, 11, 12, 16},
}


def options_of_extent(sentence: str, subtask: Subtask, *, levels: bool) -> set[str]:
    """Return the option texts (levels or walls) of a subtask that a sentence may name."""
    levels_named = {bare_place(name) for name in _named(sentence, levels=levels)}
    levels_named |= {name for name, pattern in _RIGHT.items() if re.search(pattern, sentence, re.IGNORECASE)}
    texts = (option.text for option in subtask.options)
    return {text for text in texts if bare_place(text) in levels_named}


def bare_place(option: str) -> str:
    """Return the name that the options of several subtasks have for one level or wall."""
    return option.removesuffix(" segment")


def _named(sentence: str, *, levels: bool) -> set[str]:
    words: Mapping[str, str] = _LEVELS if levels else _WALLS
    options = {option for option, pattern in words.items() if re.search(pattern, sentence, re.IGNORECASE)}
    if re.search(_ALL, sentence, re.IGNORECASE):
        options |= words.keys() - {"Apex"}
    for listed in re.finditer(_NUMBERS, sentence, re.IGNORECASE):
        for first, last in re.findall(r"(\d{1,2})(?:\s*(?:to|-|–)\s*(\d{1,2}))?", listed[1]):
            for number in range(int(first), min(17, int(last or first)) + 1):
                options |= _levels(number) if levels else _walls(number)
    return options


def _levels(number: int) -> set[str]:
    return {level for first, last, level in _LEVEL_OF if first <= number <= last}


def _walls(number: int) -> set[str]:
    return {wall for wall, numbers in _WALL_OF.items() if number in numbers}


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
    report = _Report(text, statements, catalogue)
    for subtask in catalogue.subtasks.values():
        about_it = [statement for statement in statements if statement.subtask == subtask.id]
        spoken = [statement for statement in about_it if statement.certainty in ("certain", "uncertain")]
        if subtask.answer_type in OPEN or not about_it:
            continue
        if not spoken:
            extraction.undetermined[subtask.id] = Reason.NOT_TODAY
            continue
        outcome = report.doubt_of_finding(subtask) or report.outcome(subtask, spoken)
        if isinstance(outcome, str):
            extraction.undetermined[subtask.id] = outcome
        else:
            extraction.answers[subtask.id] = outcome
        places = (place for place, statement in enumerate(statements) if statement in spoken)
        extraction.evidence[subtask.id] = tuple(places)
    _close(extraction, catalogue)
    return extraction


def _close(extraction: Extraction, catalogue: Catalogue) -> None:
    """Remove the answers to conditional questions where the parent lacks the answer that they depend on."""
    for subtask in catalogue.subtasks.values():
        if subtask.parent is None or subtask.id not in extraction.answers:
            continue
        parent = extraction.answers.get(subtask.parent)
        if parent is None or not set(parent) & set(subtask.parent_answers):
            reason = Reason.PARENT_UNKNOWN if parent is None else Reason.AGAINST_TRUTH
            extraction.undetermined[subtask.id] = reason
            del extraction.answers[subtask.id]


class _Report:
    """A report, and the statements that one extractor took from it."""

    def __init__(self, text: str, statements: Sequence[ReportStatement], catalogue: Catalogue) -> None:
        self._text = plain(text)
        self._pieces = pieces_of(self._text, headings_of(catalogue))
        self._statements = statements
        self._catalogue = catalogue

    def doubt_of_finding(self, subtask: Subtask) -> str | None:
        """Return the doubt of a statement on the finding that a detail is of: it may be of one more."""
        if subtask.parent is None:
            return None
        normal = {option.text for option in self._catalogue[subtask.parent].options if option.normal}
        doubts = (
            statement.doubt
            for statement in self._statements
            if (statement.subtask, statement.certainty, statement.measured)
            == (subtask.parent, "certain", False)
            and statement.doubt not in (None, *_PARTIAL)
            and statement.value not in normal
        )
        return next(doubts, None)

    def outcome(self, subtask: Subtask, statements: Sequence[ReportStatement]) -> Answer | str:
        """Return option keys, or the reason why there are none."""
        certain = [statement for statement in statements if statement.certainty == "certain"]
        stated = [statement for statement in certain if not statement.measured]
        numbers = [statement for statement in certain if statement.measured]
        if reason := _doubt(subtask, stated) or self._unsure(statements, stated):
            return reason
        if subtask.parent and (reason := self._lacks_places(subtask, stated)):
            return reason
        clear = (each.value for each in stated if each.value is not None and not each.doubt)
        values = _one(tuple(dict.fromkeys(clear)), subtask)
        if isinstance(values, str):
            return values
        if _lacks_parts(subtask, certain):
            return Reason.PART_NOT_TOLD
        return _with_numbers(subtask, values, numbers)

    def _sentence(self, statement: ReportStatement) -> Sentence:
        return sentence_at(self._pieces, statement.start)

    def _unsure(
        self, statements: Sequence[ReportStatement], stated: Sequence[ReportStatement]
    ) -> Reason | None:
        """Return whether a value is hedged and no other sentence states it, with a place, for certain."""
        values = {statement.value for statement in stated if statement.value and not statement.doubt}
        sure = {(self._sentence(each), each.value) for each in stated if has(words()["place"], each.quote)}
        elsewhere = {value for _, value in sure} & values
        is_unsure = any(
            statement.value not in elsewhere or (self._sentence(statement), statement.value) in sure
            for statement in statements
            if statement.certainty == "uncertain"
        )
        return Reason.UNCERTAIN if is_unsure else None

    def _lacks_places(self, subtask: Subtask, stated: Sequence[ReportStatement]) -> Reason | None:
        """Return why the places or patterns of a finding are incomplete.

        Each stands in a sentence that states the finding, and what such a sentence names was read.
        """
        gate = [
            statement
            for statement in self._statements
            if (statement.subtask, statement.certainty) == (subtask.parent, "certain")
            and statement.value is not None
            and not statement.doubt
        ]
        anchored, mentioned = ({self._sentence(each) for each in group} for group in (gate, stated))
        if subtask.tier == 1 and mentioned - anchored:
            return Reason.UNANCHORED
        if subtask.id in words()["places"] and not self._covers(anchored, subtask, stated):
            return Reason.INCOMPLETE_PLACES
        return None

    def _covers(
        self, anchored: Collection[Sentence], subtask: Subtask, stated: Sequence[ReportStatement]
    ) -> bool:
        """Return whether all levels, or walls, that the sentences of a finding name were read."""
        levels, read = subtask.id in words()["levels"], {statement.value for statement in stated}
        phrases = [self._text[sentence.start : sentence.end] for sentence in anchored]
        if any(_is_range(phrase, levels=levels) for phrase in phrases):
            return False
        return all(options_of_extent(phrase, subtask, levels=levels) <= read for phrase in phrases)


def _is_range(phrase: str, *, levels: bool) -> bool:
    """Return whether places are a range that leaves those in between open: `basal to apical`."""
    if not levels:
        return has(words()["range_of_walls"], phrase)
    return has(words()["range_of_levels"], phrase) and not has(words()["neighbours"], phrase)


def _lacks_parts(subtask: Subtask, certain: Sequence[ReportStatement]) -> bool:
    """Return whether a question asks about several structures and one of them is not mentioned."""
    heading = words()["heading_of_valves"]
    quotes = " ".join(re.sub(heading, "", each.quote, flags=re.IGNORECASE) for each in certain)
    return not all(has(part, quotes) for part in words()["parts"].get(subtask.id, {}).values())


def _doubt(subtask: Subtask, stated: Sequence[ReportStatement]) -> str | None:
    """Return the doubt that no other statement resolves.

    A partial denial leaves other values valid, and a statement that may say what a clear one says is needed
    no more.
    """
    normal = {option.text for option in subtask.options if option.normal}
    is_abnormal = any(statement.value not in normal and not statement.doubt for statement in stated)
    clear = {statement.value for statement in stated if not statement.doubt}
    for statement in stated:
        if not statement.doubt or (statement.value in clear and statement.doubt not in _DENYING):
            continue
        if statement.doubt not in _PARTIAL or not is_abnormal:
            return statement.doubt
    return None


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

    A number in doubt counts only if it says what nothing else does.
    """
    number_values = {number.value for number in numbers if number.value is not None}
    clear = set(values) | {number.value for number in numbers if not number.doubt}
    if doubts := [number.doubt for number in numbers if number.doubt and number.value not in clear]:
        return str(doubts[0])
    if values:
        allowed = [{number.value} if number.value else set(number.near) for number in numbers]
        is_against = any(each and not each & set(values) for each in allowed)
        return Reason.NUMBER_AGAINST_WORDS if is_against else _keys(subtask, values)
    if len(number_values) != 1 or any(
        number.value is None and number_values.isdisjoint(number.near) for number in numbers
    ):
        return Reason.SEVERAL_VALUES if len(number_values) > 1 else Reason.BETWEEN_GRADES
    return _keys(subtask, tuple(value for value in number_values if value))


def _keys(subtask: Subtask, values: tuple[str, ...]) -> Answer:
    return tuple(option.key for option in subtask.options if option.text in values)
