"""Subjects of statements: whether it is told of which structure one is, and whether its grade is its own."""

import re

from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has, words
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.protocol.tasks.lexicon import ANY
from cardiolens.report_text.findings import Finding
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.sections import Sentence
from cardiolens.report_text.understanding import vocabulary


def doubt_of_subject(
    statement: ReportStatement, finding: Finding, sentence: Sentence, text: str, catalogue: Catalogue
) -> str | None:
    """Return why a statement may be of another structure, or have another one's grade; None if not."""
    subtask = catalogue[statement.subtask]
    if _lacks_structure(statement, sentence, text):
        return Reason.OTHER_STRUCTURE
    if _lacks_grade(finding, subtask):
        return Reason.WITHOUT_GRADE
    is_open = finding.is_assumed and (
        _lacks_subject(statement, text[sentence.start : sentence.end], catalogue)
        or _is_below_right_heart(statement, subtask, sentence, text)
    )
    return Reason.OTHER_STRUCTURE if is_open else None


def _lacks_subject(statement: ReportStatement, sentence: str, catalogue: Catalogue) -> bool:
    """Return whether a statement that names no structure of its own leaves open which one is meant."""
    needed = words()["subject"].get(statement.subtask)
    if statement.polarity == "affirmed" and needed and not has(needed, sentence):
        return True
    return vocabulary(catalogue).names_other_structure(statement.quote, 0, len(statement.quote))


def _lacks_structure(statement: ReportStatement, sentence: Sentence, text: str) -> bool:
    """Return whether the structure that a statement must name stands elsewhere, or behind a contrast.

    A free wall without its ventricle is of either, and so are the level and the layer of what the right one
    has: `LGE of the basal RV free wall`.
    """
    phrase = text[sentence.start : sentence.end]
    if statement.subtask in words()["of_left_myocardium"] and has(words()["right_wall"], statement.quote):
        return True
    if statement.subtask in words()["of_left_ventricle"] and has(words()["free_wall"], statement.quote):
        return not has(words()["left_heart"], f"{_label_of(sentence, text)} {phrase}")
    needed = words()["named_structure"].get(statement.subtask)
    if needed is None:
        return False
    parts = re.split(words()["contrast"], text[sentence.start : statement.end], flags=re.IGNORECASE)
    label = _label_of(sentence, text)
    label = "" if has(r"\d", label) else label  # `RVEF 56 %` above `No RWMA` is a statement, and no heading
    own_label = parts[0].rpartition(":")[0]
    if has(words()["left_walls"], statement.quote):
        # `inferior aneurysm and RV involvement`: what is said of the right one is not that it bulges
        phrases = re.split(words()["beside"], statement.quote, flags=re.IGNORECASE)
        on_muscle = [part for part in phrases if has(words()["of_muscle"], part)]
        return not any(has(needed, part) for part in (label, own_label, *on_muscle))
    return not any(has(needed, part) for part in (label, own_label, parts[-1], statement.quote))


def _lacks_grade(finding: Finding, subtask: Subtask) -> bool:
    """Return whether the grade that a statement needs is of something else: `large thrombus, dilated LV`."""
    normal = {option.text for option in subtask.options if option.normal}
    is_abnormal = subtask.id in words()["graded"] and finding.value not in normal
    return is_abnormal and finding.grade == ANY and not has(rf"{words()['grade']}\w*\W*$", finding.quote)


def _is_below_right_heart(
    statement: ReportStatement, subtask: Subtask, sentence: Sentence, text: str
) -> bool:
    """Return whether a statement that names no ventricle goes on with the right one: `The free wall bulges.`

    Normal motion is of the left one, whatever stands before it, and so is a line with a label of its own.
    """
    is_normal = any(option.text == statement.value and option.normal for option in subtask.options)
    if subtask.id not in words()["of_left_ventricle"] or sentence.part:
        return False
    line = text.rfind("\n", 0, sentence.start) + 1
    if has(words()["own_label"], text[line : sentence.end]):
        return False
    if subtask.id == "C06" and is_normal:
        above = text[text.rfind("\n", 0, max(0, line - 1)) + 1 : line]
        return has(words()["right_label"], above) or has(words()["right_label"], text[line : sentence.start])
    before = text[: sentence.start]
    ventricles = re.findall(words()["ventricles"], before[before.rfind("\n\n") + 1 :], re.IGNORECASE)
    return bool(ventricles) and has(words()["right_ventricle"], ventricles[-1])


def _label_of(sentence: Sentence, text: str) -> str:
    """The heading of a sentence if it names structures and says nothing of them."""
    heading = heading_of(sentence, text)
    return heading if grammar().labels.issuperset(re.findall(r"[^\W\d_]+", heading.lower())) else ""


def heading_of(sentence: Sentence, text: str) -> str:
    """Return the heading that a sentence stands below, of the form of a ventricle first."""
    headings = [heading for heading in (sentence.part, sentence.topic) if heading]
    return text[headings[0].start : headings[0].end] if headings else ""
