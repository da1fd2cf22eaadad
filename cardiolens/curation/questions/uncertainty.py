"""Uncertainty of a single statement: why its value cannot be relied on."""

import re
from collections.abc import Mapping

from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has, has_for, words
from cardiolens.protocol.tasks.catalogue import Subtask


def doubt_of(statement: ReportStatement, subtask: Subtask, sentence: str) -> str | None:
    """Return why a finding is uncertain, or None."""
    if statement.value is None:
        return Reason.NO_OPTION
    if has(words()["a_ventricle"], statement.quote) and not has(words()["of_a_side"], sentence):
        return Reason.OTHER_STRUCTURE
    if subtask.id == "C16" and _leaves_a_side_open(sentence):
        return Reason.PART_NOT_TOLD
    normal = statement.value in {option.text for option in subtask.options if option.normal}
    doubt = _doubt_of_grade(statement, subtask, normal=normal)
    if doubt is None and not normal:
        doubt = _doubt_of_abnormal(statement, subtask, sentence)
    return doubt or (_doubt_of_normal(statement, subtask, sentence) if normal else None)


def _leaves_a_side_open(sentence: str) -> bool:
    """Return whether a sentence leaves open which atrium is large: `large atria, left most`.

    So does a list of two names and two values (`LA, RA: large, normal`), and an atrium that is
    named by its side in other words (`left-sided`), which is read as either.
    """
    rules = words()
    if has(rules["two_labels"], sentence) or has(rules["side_of_another_name"], sentence):
        return True
    sentence = re.sub(rules["label_of_all"], " ", sentence, flags=re.IGNORECASE)
    atria = {match[0][0].lower() for match in re.finditer(rules["one_atrium"], sentence, re.IGNORECASE)}
    return len(atria) == 1 and has(rules["all_atria"], sentence)


def _doubt_of_abnormal(statement: ReportStatement, subtask: Subtask, sentence: str) -> str | None:
    if has_for("outside", subtask.id, sentence):
        return Reason.OTHER_STRUCTURE
    if has(words()["whole_pattern"], statement.value or "") and has(words()["part"], sentence):
        return Reason.BETWEEN_GRADES
    if statement.polarity == "affirmed" and has_for("contrary", subtask.id, statement.quote):
        return Reason.CONTRADICTION
    if statement.polarity == "affirmed" and has(words()["denied_label"], sentence):
        return Reason.CONTRADICTION
    if has(words()["of_change"], statement.quote):
        return Reason.QUALIFIED_DENIAL
    return Reason.BETWEEN_GRADES if has_for("share", subtask.id, statement.quote) else None


def _doubt_of_grade(statement: ReportStatement, subtask: Subtask, *, normal: bool) -> str | None:
    rules = words()
    if subtask.id in rules["graded"] and not normal and not has(rules["grade"], statement.quote):
        return Reason.WITHOUT_GRADE
    if _contradicts_grade(statement, subtask, rules["means"]):
        return Reason.BETWEEN_GRADES
    if has(rules["grades"], statement.quote) and not has_for("held", subtask.id, statement.quote):
        return Reason.BETWEEN_GRADES if subtask.id in rules["graded"] else None
    return Reason.BORDERLINE if has(rules["borderline"], statement.quote) else None


def _contradicts_grade(
    statement: ReportStatement, subtask: Subtask, means: Mapping[str, Mapping[str, list[str]]]
) -> bool:
    """Return whether the grades of a clause map to other options than the one that was read."""
    allowed = [
        options[subtask.id]
        for grade, options in means.items()
        if subtask.id in options and has(grade, statement.quote)
    ]
    key = next(option.key for option in subtask.options if option.text == statement.value)
    denied = statement.polarity == "negated"
    return bool(allowed) and not denied and key not in {option for keys in allowed for option in keys}


def _doubt_of_normal(statement: ReportStatement, subtask: Subtask, sentence: str) -> str | None:
    if subtask.id in words()["gates"] and _denies_a_part(statement, subtask, sentence):
        return Reason.DENIED_IN_PART
    return Reason.QUALIFIED_DENIAL if _denies_a_kind(statement, subtask) else None


def _denies_a_part(statement: ReportStatement, subtask: Subtask, sentence: str) -> bool:
    """Return whether a denial is limited to a place or has an exception, and so leaves the rest open."""
    rules = words()
    place_pattern = rules["own_place"].get(subtask.id)
    quote = re.sub(rules["whole_of"], " ", statement.quote, flags=re.IGNORECASE)
    phrase = re.sub(place_pattern, "", quote, flags=re.IGNORECASE) if place_pattern else quote
    limited = has(rules["place"], phrase) or has(
        rules["place"], _before(statement.quote, sentence, place_pattern)
    )
    names_both = has(rules["left_heart"], statement.quote) and has(rules["right_heart"], sentence)
    is_of_a_side = names_both and subtask.sequence != "cine"  # `LGE of the RV free wall; no LV enhancement`
    return limited or is_of_a_side or has(rules["exception"], sentence)


def _denies_a_kind(statement: ReportStatement, subtask: Subtask) -> bool:
    """Return whether a denial is of a kind, grade or one of several findings, leaving the others open."""
    rules = words()
    denied = statement.polarity == "negated" or has(r"\b(no|not|without)\b", statement.quote)
    return (
        has_for("function", subtask.id, statement.quote)
        or (denied and subtask.id in rules["parts"] and has(rules["grade"], statement.quote))
        or (denied and has(rules["kind"], statement.quote))
        or (denied and subtask.id != "T01" and has(rules["of_change"], statement.quote))
        or (subtask.id in rules["whole"] and not has_for("whole", subtask.id, statement.quote))
        # No thinning: the wall may be thick.
        or (subtask.id == "C02" and denied and not has(r"abnormal|normal", statement.quote))
    )


def _before(quote: str, sentence: str, place_pattern: str | None) -> str:
    """Return the words before a clause, which may limit it: `the remaining segments contract normally`."""
    head = re.split(words()["contrast"], sentence.partition(quote)[0], flags=re.IGNORECASE)[-1][-25:]
    return re.sub(place_pattern, "", head, flags=re.IGNORECASE) if place_pattern else head
