"""Doubt of a single finding: why its value is not told for certain."""

import re
from collections.abc import Mapping

from cardiolens.curation.questions.reasons import Reason
from cardiolens.curation.questions.statement import Found
from cardiolens.curation.questions.strict_patterns import has, has_for, words
from cardiolens.protocol.tasks.catalogue import Subtask


def doubt_of(found: Found, subtask: Subtask, sentence: str) -> str | None:
    """Why the value of a finding is not told for certain; None where it is."""
    if found.value is None:
        return Reason.NO_OPTION
    normal = found.value in {option.text for option in subtask.options if option.normal}
    doubt = _doubt_of_grade(found, subtask, normal=normal)
    if doubt is None and not normal:
        doubt = _doubt_of_abnormal(found, subtask, sentence)
    return doubt or (_doubt_of_normal(found, subtask, sentence) if normal else None)


def _doubt_of_abnormal(found: Found, subtask: Subtask, sentence: str) -> str | None:
    if has_for("outside", subtask.id, sentence):
        return Reason.OTHER_STRUCTURE
    if found.polarity == "affirmed" and has_for("contrary", subtask.id, found.quote):
        return Reason.CONTRADICTION
    return Reason.BETWEEN_GRADES if has_for("share", subtask.id, found.quote) else None


def _doubt_of_grade(found: Found, subtask: Subtask, *, normal: bool) -> str | None:
    rules = words()
    if subtask.id in rules["graded"] and not normal and not has(rules["grade"], found.quote):
        return Reason.WITHOUT_GRADE
    if _contradicts_grade(found, subtask, rules["means"]):
        return Reason.BETWEEN_GRADES
    if has(rules["grades"], found.quote) and not has_for("held", subtask.id, found.quote):
        return Reason.BETWEEN_GRADES if subtask.id in rules["graded"] else None
    return Reason.BORDERLINE if has(rules["borderline"], found.quote) else None


def _contradicts_grade(found: Found, subtask: Subtask, means: Mapping[str, Mapping[str, list[str]]]) -> bool:
    """Return whether the grades of a clause mean other options than the one that was read."""
    allowed = [
        options[subtask.id]
        for grade, options in means.items()
        if subtask.id in options and has(grade, found.quote)
    ]
    key = next(option.key for option in subtask.options if option.text == found.value)
    denied = found.polarity == "negated"
    return bool(allowed) and not denied and key not in {one for keys in allowed for one in keys}


def _doubt_of_normal(found: Found, subtask: Subtask, sentence: str) -> str | None:
    if subtask.id in words()["gates"] and _denies_a_part(found, subtask, sentence):
        return Reason.DENIED_IN_PART
    return Reason.QUALIFIED_DENIAL if _denies_a_kind(found, subtask) else None


def _denies_a_part(found: Found, subtask: Subtask, sentence: str) -> bool:
    """Return whether a denial is of a place, or has an exception: it leaves the whole open."""
    rules = words()
    own = rules["own_place"].get(subtask.id)
    quote = re.sub(rules["whole_of"], " ", found.quote, flags=re.IGNORECASE)
    written = re.sub(own, "", quote, flags=re.IGNORECASE) if own else quote
    limited = has(rules["place"], written) or has(rules["place"], _before(found.quote, sentence, own))
    return limited or has(rules["exception"], sentence)


def _denies_a_kind(found: Found, subtask: Subtask) -> bool:
    """Return whether a denial is of a kind, a grade or one of several findings: it leaves the others open."""
    rules = words()
    denied = found.polarity == "negated" or has(r"\b(no|not|without)\b", found.quote)
    return (
        has_for("function", subtask.id, found.quote)
        or (denied and has(rules["kind"], found.quote))
        or (subtask.id in rules["whole"] and not has_for("whole", subtask.id, found.quote))
        # No thinning: the wall may be thick.
        or (subtask.id == "C02" and denied and not has(r"abnormal|normal", found.quote))
    )


def _before(quote: str, sentence: str, own: str | None) -> str:
    """The words right before a clause that may limit it: `the remaining segments contract normally`."""
    head = sentence.partition(quote)[0][-25:]
    return re.sub(own, "", head, flags=re.IGNORECASE) if own else head
