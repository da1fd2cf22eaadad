"""Ambiguity: marks and known words that leave open, together, what a sentence says."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile

from cardiolens.report_text.clauses import Clause, clauses
from cardiolens.report_text.mentions import Mention

_JOINTS = frozenset({"comma", "and", "with", "contrasts"})
_VALUES = frozenset({"predicate", "negated_behind"})
_DENIALS = frozenset({"negated", "negated_behind"})
_OWN = ("name", "structure", "place", "measure", "negated", "lasting")  # kinds of a clause of its own
_SAYING = frozenset({*_VALUES, "name", "state", "negated", "measure", "grade", "lasting", "spared"})
_APART = frozenset({*_JOINTS, "or", "to", "verb", "colon", "lasting", "open", "negated", "predicate"})
_TOGETHER = (
    {"jet", "regurgitation"},
    {"jet"},
    {"regurgitation"},
    {"sam", "jet"},
    {"enhancement"},
    {"signal"},
)
_PREPOSITIONS = frozenset({"of", "in", "at", "into", "from", "through", "the", "a"})
_RESTS = frozenset({"remaining", "the rest of", "the remainder of", "rest of the", "otherwise", "elsewhere"})
_QUANTITIES = re.compile(
    r"(?:m[lL]|k?g|l|L)\s*/\s*(?:m\s?(?:2|²|\^2)?|min)\b|\bw/o?\b|\b(?:T2/STIR|rest/stress|stress/rest)\b"
)
_BOTH_DENIED = re.compile(r"\b(?:no|without)\s+[A-Za-z][\w \-]*\w/(?!no\b|yes\b)", re.IGNORECASE)
_SIGN = re.compile(r"(?<=[\w\s])[+](?=\s|[,;.]|$)(?!\s+\w)|(?<=\s)[-–](?=\s*(?:[,;.]|$))")  # `MR +, TR -`
_OPTIONS = re.compile(r"(?<=\w)\s*[/|\\]\s*(?=\w)")
_BRACES = re.compile(r"[\[\]{}<>*_☐☒☑□?~\\|]|\.{3}|…|!|=>|→")
# The name of images is no finding, nor is their quality.
_IMAGES = re.compile(
    r"\b(?:scar|fibrosis|infarct(?:ion)?|necrosis)\s+(?:images?|sequences?)\b|"
    r"\b(?:images?|imaging|sequences?|study|scan)\b[^.;]{0,20}\b(?:poor|limited|suboptimal|weak|low|reduced|"
    r"impaired|restricted|good|adequate|satisfactory|excellent)\b|"
    r"\bno\s+(?:images?|imaging|sequences?|contrast|gadolinium)\b(?!\s+(?:show|demonstr|enhanc|uptake))|"
    r"\b(?:study|scan|examination|mri|cmr)\s+without\b",
    re.IGNORECASE,
)


def unclear_mark(phrase: str) -> str | None:
    """Return a mark that leaves open what is meant: a choice, a gap, a bracket that nothing closes."""
    if match := _IMAGES.search(phrase) or _BRACES.search(phrase) or _SIGN.search(phrase):
        return match[0]
    if _OPTIONS.search(_BOTH_DENIED.sub(" ", _QUANTITIES.sub(" ", phrase))):
        return "/"
    depth = 0
    for letter in phrase:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return ")"
    return "(" if depth else '"' if phrase.count('"') % 2 else None


def unclear_sense(mentions: Sequence[Mention]) -> str | None:
    """Return known words of a sentence that leave open what it says; None if there are none."""
    return next(filter(None, (check(mentions) for check in _CHECKS)), None)


def _several_denials(mentions: Sequence[Mention]) -> str | None:
    """`no no LGE`, `no LGE can be excluded`, `absent present`; not in two parts of a list."""
    denials: list[Mention] = []
    for mention in mentions:
        is_behind = any(denial.kind == "negated_behind" for denial in denials)
        if mention.kind in _JOINTS or mention.text == ";":
            denials = []
        elif mention.kind in _DENIALS or (is_behind and mention.name == "present"):
            denials.append(mention)
        if len(denials) > 1 and all(denial.text != "nor" for denial in denials):
            return " ".join(denial.text for denial in denials)
    return None


def _answers_of_a_form(mentions: Sequence[Mention]) -> str | None:
    """`LGE: no, septal yes`, `present - absent`: the answers of a form, of which none is ticked."""
    texts = {mention.text for mention in mentions}
    denied = any(mention.kind in _DENIALS for mention in mentions)
    return "yes" if denied and "yes" in texts else "absent" if {"present", "absent"} <= texts else None


def _open_denial(mentions: Sequence[Mention]) -> str | None:
    """`the lateral wall does not`, `defect: no, septal`: what is denied is left out."""
    for mention, following in pairwise([*mentions, None]):
        ends = following is None or following.kind == "comma" or following.text == ";"
        if mention is not None and ends and (mention.text == "not" or (mention.text == "no" and following)):
            return mention.text
    return None


def _rest(mentions: Sequence[Mention]) -> str | None:
    """`no LGE of the remaining wall`, `no LGE yet`: a contrast that nothing stands against."""
    denied = any(mention.kind in _DENIALS for mention in mentions)
    rest = next((mention.text for mention in mentions if denied and mention.text in _RESTS), None)
    return rest or (mentions[-1].text if mentions and mentions[-1].kind == "contrasts" else None)


def _range_of_normal(mentions: Sequence[Mention]) -> str | None:
    """`normal LVEF: 55-70 %`: what is normal, and not what was measured."""
    is_range = any(
        mention.measure is not None and mention.measure.low < mention.measure.high for mention in mentions
    )
    normal = next(
        (mention.text for mention in mentions if mention.kind == "predicate" and mention.name == "normal"),
        None,
    )
    return normal if is_range else None


def _neighbours(mentions: Sequence[Mention]) -> str | None:
    """`normal-reduced`: values side by side; `LGE in sarcoidosis`: what a disease has."""
    for first, second in pairwise(mentions):
        if (first.kind in _VALUES and second.kind in _VALUES) or (
            first.text == "in" and second.kind == "disease"
        ):
            return f"{first.text} {second.text}"
    return None


def _run_on(mentions: Sequence[Mention]) -> str | None:
    """`no tricuspid regurgitation small pericardial effusion`: two statements that nothing keeps apart."""
    trait, is_apart, has_place, is_denied = "", True, False, False
    structures: frozenset[str] = frozenset()  # those of the state before
    for before, mention in pairwise([None, *mentions]):
        assert mention is not None
        is_denied = is_denied or mention.kind in _DENIALS
        is_joint = mention.text.split()[0] == "with" and not is_denied
        if mention.kind in _APART or mention.text == ";" or is_joint:
            is_apart, structures = True, frozenset()
        elif mention.kind == "structure":
            is_beside = before is None or before.text.split()[-1] not in _PREPOSITIONS
            if trait and is_beside and not is_apart and structures and structures.isdisjoint(mention.names):
                return mention.text
            has_place, structures = True, frozenset(mention.names)
        elif mention.kind == "place":
            has_place = True
        elif mention.kind == "state":
            if trait and has_place and not is_apart and {trait, mention.trait} not in _TOGETHER:
                return mention.text
            trait, is_apart, has_place = mention.trait, False, False
    return None


def _choice(mentions: Sequence[Mention]) -> str | None:
    """`normal or dilated`: a choice, unless all of it is denied."""
    at = next((at for at, mention in enumerate(mentions) if mention.kind == "or"), None)
    if at is None or any(mention.kind in _DENIALS for mention in mentions[:at]):
        return None
    return mentions[at].text


def _range_of_values(mentions: Sequence[Mention]) -> str | None:
    """`preserved to mildly reduced`, `mild to no effusion`: a range of values, which two grades may share."""
    for before, joint, behind in zip(mentions, mentions[1:], mentions[2:], strict=False):
        kinds = {before.kind, behind.kind}
        if joint.kind == "to" and kinds <= {*_VALUES, "grade", "negated"} and kinds != {"grade"}:
            return f"{before.text} {joint.text} {behind.text}"
    return None


def _grade_left_open(mentions: Sequence[Mention]) -> str | None:
    """`LV mildly, RV severely reduced`, `dilatation is not mild`: a grade of what is left out, or denied."""
    for at, (before, grade) in enumerate(pairwise(mentions)):
        behind = [mention.kind for mention in mentions[at + 2 : at + 4]]
        is_cut = before.kind == "structure" and (not behind or behind[0] in _JOINTS)
        is_adverb = grade.text.endswith("ly") and is_cut and behind[1:] != ["predicate"]
        is_denied = before.text.split()[-1] == "not"
        if grade.kind == "grade" and (is_adverb or is_denied):
            return f"{before.text} {grade.text}"
    return None


def _list_of_values(mentions: Sequence[Mention]) -> str | None:
    """`normal, reduced`; `none; focal; diffuse`; `no LGE but the septum`: values without a finding."""
    for before, clause in pairwise(clauses(mentions)):
        is_exception = clause.joint == "contrasts" and clause.kinds.isdisjoint(_SAYING)
        is_pattern = bool(before.of_kind("negated_behind")) and clause.kinds <= {"place", "grade"}
        if is_exception or is_pattern or _is_further_value(before, clause):
            return " ".join(mention.text for mention in clause.mentions)
    return None


def _is_further_value(before: Clause, clause: Clause) -> bool:
    is_graded_number = (
        before.of_kind("measure") and not before.of_kind(*_VALUES) and not clause.of_kind("state")
    )
    has_value = bool(clause.of_kind(*_VALUES, "state") and before.of_kind(*_VALUES, "measure"))
    has_value = has_value and not is_graded_number  # "LVEF 24 %, severely reduced"
    return clause.joint in ("comma", "and") and has_value and not clause.of_kind(*_OWN)


def _bracketed_statement(mentions: Sequence[Mention]) -> str | None:
    """`LV function reduced (RV function preserved)`: a bracket with a statement on another structure."""
    inside: list[Mention] | None = None
    before: set[str] = set()
    for mention in mentions:
        if mention.kind == "open":
            inside = []
        elif mention.kind == "close":
            names = {name for member in inside or () if member.kind == "structure" for name in member.names}
            kinds = {member.kind for member in inside or ()}
            if (names - before and kinds & {*_VALUES, "state", "negated"}) or {
                "name",
                "verb",
                "predicate",
            } <= kinds:
                return "("
            inside = None
        elif inside is not None:
            inside.append(mention)
        elif mention.kind == "structure":
            before |= {*mention.names}
    return None


def _pair_of_two_statements(mentions: Sequence[Mention]) -> str | None:
    """`dilated LV and RV function is preserved`: an adjective of the first, and a statement on the second."""
    for at, (before, pair) in enumerate(pairwise(mentions)):
        is_pair = pair.kind == "structure" and pair.end - pair.start > len(pair.text) + 3  # was merged of two
        if not is_pair or before.kind not in ("state", "predicate"):
            continue
        behind = list(takewhile(lambda mention: mention.kind not in _JOINTS, mentions[at + 2 :]))
        if any(mention.kind in ("predicate", "measure") for mention in behind):
            return pair.text
    return None


def _behind_a_dash(mentions: Sequence[Mention]) -> str | None:
    """`no pleural effusion - the RV is dilated`: a statement behind a whole one, which is no label of it."""
    at = next((at for at, mention in enumerate(mentions) if mention.kind == "colon"), None)
    if at is None:
        return None
    before, behind = ({mention.kind for mention in part} for part in (mentions[:at], mentions[at + 1 :]))
    is_whole = bool(before & {"negated", "verb"}) and bool(before & {"state", "name"})
    names = {name for mention in mentions[at + 1 :] if mention.kind == "structure" for name in mention.names}
    is_other = bool(names) and bool(behind & {"predicate", "state", "verb"})
    return mentions[at].text if is_whole and is_other else None


def _value_of_a_statement(mentions: Sequence[Mention]) -> str | None:
    """`Atria enlarged: left`: a label that states something of both, and one of them as its value."""
    at = next((at for at, mention in enumerate(mentions) if mention.kind == "colon"), None)
    if at is None:
        return None
    label, value = ({mention.kind for mention in part} for part in (mentions[:at], mentions[at + 1 :]))
    has_structure = {"structure", "state"} <= label and "structure" in value
    return (
        mentions[at].text if has_structure and value.isdisjoint({"state", "predicate", *_DENIALS}) else None
    )


def _denied_on(mentions: Sequence[Mention]) -> str | None:
    """`no effusion and reduced RV function`: whether the second is denied as well is not said."""
    for before, clause in pairwise(clauses(mentions)):
        is_abnormal = any(clause.mentions[at].name != "normal" for at in clause.of_kind("predicate"))
        has_own = bool(clause.of_kind("structure") and clause.of_kind("state", "predicate"))
        is_on = clause.joint == "and" and before.of_kind("negated") and not clause.of_kind("negated", "verb")
        if is_on and (is_abnormal or has_own) and not clause.of_kind("negated_behind"):
            return " ".join(mention.text for mention in clause.mentions)
    return None


_CHECKS: Sequence[Callable[[Sequence[Mention]], str | None]] = (
    _several_denials,
    _bracketed_statement,
    _behind_a_dash,
    _value_of_a_statement,
    _denied_on,
    _pair_of_two_statements,
    _answers_of_a_form,
    _open_denial,
    _rest,
    _range_of_normal,
    _neighbours,
    _run_on,
    _choice,
    _range_of_values,
    _grade_left_open,
    _list_of_values,
)
