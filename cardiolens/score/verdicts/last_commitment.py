"""The last commitment of a reply without marks: "This is most likely B." (protocol 17.16)."""

import functools
import re

from cardiolens.score.verdicts.commitments import Remark, order, provisional, said_of_options
from cardiolens.score.verdicts.reading import UNREADABLE, Reading, reading_of
from cardiolens.score.verdicts.reply_tokens import Tokenizer


def committed(text: str, tokenizer: Tokenizer, *, several: bool) -> tuple[Reading, int] | None:
    """The last commitment of a reply without marks, and where it ends; None without one.

    UNREADABLE where an option that the reply leaves open or names elsewhere may belong to the answer. Where a
    reply denies all other options, those that it only names are its answer.
    """
    remarks = list(said_of_options(text, tokenizer))
    denied = {key for remark in remarks if remark.stance == "denies" for key in remark.keys}
    mentioned = {key for remark in remarks if remark.stance == "mentions" for key in remark.keys}
    is_partition = bool(denied) and denied | mentioned == tokenizer.texts.keys and not denied & mentioned
    stances = {"commits", "affirms", "adds"} | ({"mentions"} if is_partition else set())
    commitments = [
        remark for remark in remarks if remark.stance in stances and (several or len(remark.keys) == 1)
    ]
    if not commitments:
        return None if several else _only_gloss(remarks, denied)
    last = commitments[-1]
    if denied & set(last.keys):
        return UNREADABLE, last.end
    says_nothing = {"denies"} if last.is_alone else {"denies", "explains"}
    start = max((remark.end for remark in remarks if remark.end <= last.start), default=0)
    is_ordered = order().search(text[start : last.end].lower()) is not None
    other_remarks = [
        remark
        for remark in remarks
        if remark.stance not in says_nothing
        and not (
            remark.stance == "hedges"
            and not several
            and remark.start > last.start
            and _concedes().search(text[last.end : remark.start].lower())
        )
        and not (
            (remark.stance == "mentions" or (remark.stance == "hedges" and not last.is_alone))
            and not several
            and set(last.keys) < set(remark.keys)
        )
        and not (remark.stance == "hedges" and remark.is_alone and remark.start > last.start and not several)
        and not set(remark.keys) <= set(last.keys)
        and not (is_ordered and provisional().search(text[remark.start : remark.end].lower()))
        and not (
            is_ordered
            and remark.stance == "hedges"
            and remark.end <= last.start
            and _supposed().search(text[remark.start : remark.end].lower())
        )
        and not (
            remark.stance == "hedges"
            and not several
            and remark.start > last.start
            and _unreal().search(text[remark.start : remark.end].lower())
        )
    ]
    if any(
        several
        or last.is_alone
        or (remark.start > last.start and remark.stance not in {"mentions", "explains"})
        or remark.stance in {"commits", "affirms"}
        for remark in other_remarks
    ):
        return UNREADABLE, last.end
    return reading_of(list(last.keys)), last.end


def _only_gloss(remarks: list[Remark], denied: set[str]) -> tuple[Reading, int] | None:
    """The option that a reply names in a bracket, and denies others: "mildly reduced (B), not (C)"."""
    naming = [remark for remark in remarks if remark.stance != "denies"]
    is_one = len({remark.keys for remark in naming}) == 1 and len(naming[0].keys) == 1
    if not denied or not is_one or set(naming[0].keys) & denied:
        return None
    is_plain = all(remark.is_gloss and remark.stance in {"mentions", "explains"} for remark in naming)
    return (reading_of(list(naming[0].keys)), naming[-1].end) if is_plain else None


@functools.cache
def _unreal() -> re.Pattern[str]:
    """Pattern of what would be the answer if things were otherwise."""
    return re.compile(r"\bwould(?: have| need| require)\b|\b(?:hätte|wäre|serait|sería|aurait)\b")


@functools.cache
def _concedes() -> re.Pattern[str]:
    """Pattern of what opens a clause that concedes, and takes nothing back."""
    return re.compile(r"\b(?:although|though|even if|obwohl|bien que|aunque)\b|虽然|尽管")


@functools.cache
def _supposed() -> re.Pattern[str]:
    """Pattern of what others would answer, or what would be if things were otherwise."""
    return re.compile(
        r"\bwould\b|\bmight\b|\bpossibl|\bperhaps\b|\bmaybe\b|\bcould\b|\bif\b|\bwäre\b|\bwürde\b"
    )
