"""Assertion of findings in a clause: affirmed or negated; certain, uncertain, historical or hypothetical.

After ConText (Harkema et al. 2009): cues act forward or backward within their clause, and along a list.
"""

from collections.abc import Sequence

from cardiolens.report_text.clauses import Clause
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.mentions import Mention

MARKS = frozenset(",:.;()&+'\"-–—%#=")
_SAYING = frozenset(["place", "structure", "grade", "predicate", "negated", "negated_behind"])
_VALUES = frozenset({"predicate", "negated_behind"})
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
    if _is_left_open(clauses[number], at) or _is_choice(clauses[number]):
        return "uncertain"
    doubted = reaches(clauses, number, at, "uncertain") or _asked(clauses[number], at)
    if doubted or follows(clauses[number], at, "uncertain_behind"):
        return "uncertain"
    past = _earlier(clauses, number, at, "historical", across=False)
    return "historical" if past and not negated and not _lasts(clauses, number) else "certain"


def _is_left_open(clause: Clause, at: int) -> bool:
    """Return whether a finding is named, and the words behind it are not known: `LGE deferred`."""
    behind = [mention for mention in clause.mentions[at + 1 :] if mention.kind not in ("verb", "colon")]
    if len(behind) > 1 and behind[0].text == "not" and is_unknown(behind[1]):
        return True
    is_bare = clause.mentions[at].name == "present" and clause.kinds.isdisjoint(_SAYING)
    return is_bare and bool(behind) and is_unknown(behind[0])


def _is_choice(clause: Clause) -> bool:
    """Return whether a clause gives values to choose from: `normal / reduced`, `present or absent`."""
    values = [
        first.kind in _VALUES and joint.kind == "or" and second.kind in _VALUES
        for first, joint, second in zip(
            clause.mentions, clause.mentions[1:], clause.mentions[2:], strict=False
        )
    ]
    return any(values) and not clause.of_kind("negated")


def is_unknown(mention: Mention) -> bool:
    """Return whether a mention is a word or a number without a role."""
    is_word = (
        mention.kind == "word" and mention.text not in MARKS and (mention.text,) not in grammar().fillers
    )
    return is_word or mention.kind in ("number", "measure")


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
