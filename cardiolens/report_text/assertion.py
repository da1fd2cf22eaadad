"""Assertion of findings in a clause: affirmed or negated; certain, uncertain, historical or hypothetical.

After ConText (Harkema et al. 2009): cues act forward or backward within their clause, and along a list.
"""

from collections.abc import Sequence

from cardiolens.report_text.clauses import Clause

_LIST_ENDS = ("negated", "verb", "grade", "measure", "colon", "uncertain")


def reaches(clauses: Sequence[Clause], number: int, at: int, cue: str) -> bool:
    """Return whether a cue precedes a position in a clause, or in the list that the clause continues."""
    before = clauses[number].of_kind(cue)
    if before and before[0] < at:
        return True
    return _carries_on(clauses, number) and reaches(
        clauses, number - 1, len(clauses[number - 1].mentions), cue
    )


def follows(clause: Clause, at: int, cue: str) -> bool:
    """Return whether a cue follows a position in a clause."""
    return any(place > at for place in clause.of_kind(cue))


def is_negated(clauses: Sequence[Clause], number: int, at: int) -> bool:
    """Return whether the mention at a position in a clause is negated."""
    mentions = clauses[number].mentions
    return (
        reaches(clauses, number, at, "negated")
        or follows(clauses[number], at, "negated_behind")
        or (at + 1 < len(mentions) and mentions[-1].text == "no")  # "scar: no"
        or any(mention.kind == "prefix" for mention in mentions[max(0, at - 1) : at])
    )


def certainty(clauses: Sequence[Clause], number: int, at: int, *, negated: bool) -> str:
    """Return the certainty of a mention: "certain", "uncertain", "historical" or "hypothetical"."""
    if any(clause.of_kind("technique") for clause in clauses):
        return "hypothetical"
    if _earlier(clauses, number, at, "hypothetical", across=True):
        return "hypothetical"
    doubted = reaches(clauses, number, at, "uncertain") or _asked(clauses[number], at)
    if doubted or follows(clauses[number], at, "uncertain_behind"):
        return "uncertain"
    past = _earlier(clauses, number, at, "historical", across=False)
    return "historical" if past and not negated and not _lasts(clauses, number) else "certain"


def _carries_on(clauses: Sequence[Clause], number: int) -> bool:
    """Return whether a clause continues the list of the one before it: `no A, B or C`, `no A and B`."""
    clause = clauses[number]
    if clause.joint not in ("and", "comma") or clause.of_kind(*_LIST_ENDS):
        return False
    if any(clause.mentions[at].name == "normal" for at in clause.of_kind("predicate")):
        return False
    if clause.joint == "and":
        return not clause.of_kind("place")
    rest = clauses[number:]
    return any(mention.of_kind("or") for mention in rest[:1]) or (
        len(rest) > 1 and rest[1].joint == "comma" and _carries_on(clauses, number + 1)
    )


def _earlier(clauses: Sequence[Clause], number: int, at: int, cue: str, *, across: bool) -> bool:
    """Return whether a cue occurs earlier: in the sentence if `across`, else since the last contrast."""
    while number >= 0:
        if any(place < at for place in clauses[number].of_kind(cue)):
            return True
        if not across and clauses[number].joint in ("contrasts", "exceptions", "semicolon"):
            return False
        number -= 1
        at = len(clauses[number].mentions)
    return False


def _lasts(clauses: Sequence[Clause], number: int) -> bool:
    """Return whether a clause, or the next one on the same subject, says that a finding persists."""
    following = clauses[number + 1 : number + 2]
    behind = [clause for clause in following if not clause.of_kind("name", "state")]
    return any(clause.of_kind("lasting") for clause in [clauses[number], *behind])


def _asked(clause: Clause, at: int) -> bool:
    return any(mention.text == "?" for mention in clause.mentions[:at])
