"""Fragments: sentences of known words whose governing word is missing, which leaves open what they say."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from cardiolens.protocol.tasks.segments import LEVELS
from cardiolens.report_text.assertion import MARKS
from cardiolens.report_text.mentions import Mention

_LINKS = frozenset(
    [
        "of",
        "in",
        "on",
        "at",
        "within",
        "along",
        "into",
        "by",
        "as",
        "from",
        "for",
        "with",
        "to",
        "through",
        "than",
        "without",
        "the",
        "a",
        "an",
        "and",
        "or",
    ]
)
_LEADS = frozenset(
    [
        "for",
        "from",
        "as",
        "by",
        "with",
        "without",
        "to",
        "than",
        "of",
        "through",
        "representing",
        "reflecting",
        "indicating",
    ]
)
_UNSAID = frozenset({"structure", "filler", "word"})
_HEDGES = frozenset({"consistent", "compatible", "indicative", "proof"})  # "compatible with septal scar"
_VERBS = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "do",
        "does",
        "did",
        "can",
        "could",
        "will",
        "would",
        "should",
    ]
)
_FINITE = _VERBS | {"there", "we", "opens", "open", "contracts", "moves", "thickens"}
_ATTRIBUTES = frozenset(
    {"extent", "extension", "location", "locations", "distribution", "pattern", "intensity", "images"}
    | {"image", "imaging", "sequence", "sequences", "transmurality", "shape", "weighting", "values", "times"}
)
_VALUES = frozenset({"predicate", "negated", "negated_behind", "measure", "lasting"})
_LIMITS = frozenset({"up to", "index", "indexed", "max", "maximal", "maximum", "peak"})
_ENDS = frozenset({"comma", "open", "close", "with", "and"})
_SAYING = _VALUES | {"state", "grade", "spared"}
_CHANGING = frozenset({"predicate", "state", "measure", "grade", "comma"})
_NAMES = frozenset({"name", "state", "structure", "place", "filler", "comma"})


def governing_gap(mentions: Sequence[Mention]) -> str | None:
    """Return the words that show that a sentence is no statement of its own; None if there are none."""
    spoken = [
        mention for mention in mentions if mention.kind not in ("word", "colon") or mention.text not in MARKS
    ]
    return next(filter(None, (check(spoken, mentions) for check in _CHECKS)), None)


def _is_asked(spoken: Sequence[Mention], _: Sequence[Mention]) -> str | None:
    """`Is there LGE`: a question, with or without its mark."""
    return spoken[0].text if spoken and spoken[0].text.split()[0] in _VERBS else None


def _is_led(spoken: Sequence[Mention], _: Sequence[Mention]) -> str | None:
    """`for septal scar`, `compatible with normal function`: of what is not said."""
    if not spoken or any(is_finite(mention) for mention in spoken[1:]):
        return None
    first = spoken[0].text.split()
    is_led = (
        first[0] in _LEADS
        or first[0] in _HEDGES
        or first[:2] == ["in", "keeping"]
        or first[:3] == ["in", "the", "sense"]
    )
    return spoken[0].text if is_led else None


def _is_cut(spoken: Sequence[Mention], _: Sequence[Mention]) -> str | None:
    """`septal scar consistent with`, `the LV is`: the end is missing."""
    last = spoken[-1].text.split()[-1] if spoken else ""
    return spoken[-1].text if last in _LINKS | _VERBS else None


def _is_any(spoken: Sequence[Mention], _: Sequence[Mention]) -> str | None:
    """`any septal LGE`: a question, or a condition, unless it is denied."""
    if any(mention.kind in ("negated", "negated_behind") for mention in spoken):
        return None
    return next((mention.text for mention in spoken if mention.text.split()[0] in ("any", "each")), None)


def _is_attribute(spoken: Sequence[Mention], mentions: Sequence[Mention]) -> str | None:
    """`extent of septal scar`, `LGE images of the septum`: a property is named, and no value of it."""
    if any(mention.kind == "colon" or mention.kind in _VALUES or is_finite(mention) for mention in mentions):
        return None
    for at, mention in enumerate(spoken):
        following = spoken[at + 1].text if at + 1 < len(spoken) else ""
        is_behind = at > 0 and spoken[at - 1].kind == "state"
        if mention.text.split()[-1] in _ATTRIBUTES and (is_behind or following.split()[:1] == ["of"]):
            return mention.text
    return None


def _is_definition(_: Sequence[Mention], mentions: Sequence[Mention]) -> str | None:
    """`normal LVEF is 60 %`, `LVEF not 60 %`: what is normal, or what a number is not."""
    start: Mention | None = None
    for mention in mentions:
        if mention.kind in _ENDS or mention.text in (";", "of", "with"):
            start = None
        elif mention.kind == "negated" or (mention.kind == "predicate" and mention.name == "normal"):
            start = mention
        elif mention.kind in ("structure", "place", "state", "predicate") and start is not None:
            start = start if start.kind == "negated" or mention.kind == "structure" else None
        elif mention.kind in ("measure", "number") and start is not None:
            return start.text
    return None


def _is_limit(_: Sequence[Mention], mentions: Sequence[Mention]) -> str | None:
    """`LVEF up to 60 %`: a limit, and not what was measured."""
    for before, mention in pairwise(mentions):
        is_share = mention.measure is not None and mention.measure.unit == "%"
        if is_share and before.text in _LIMITS:
            return before.text
    return None


def _is_list_of_denied(spoken: Sequence[Mention], _: Sequence[Mention]) -> str | None:
    """`no MR, TR`: whether the second is denied as well is not said."""
    denied = next((at for at, mention in enumerate(spoken) if mention.kind == "negated"), None)
    if denied is None:
        return None
    commas = [at for at, mention in enumerate(spoken) if at > denied and mention.kind == "comma"]
    if not commas:
        return None
    rest = spoken[commas[-1] + 1 :]
    has_finding = any(mention.kind == "state" for mention in rest)
    is_listed = any(mention.kind == "or" or mention.text == "or" for mention in spoken[denied:])
    is_bare = has_finding and {mention.kind for mention in rest} <= _NAMES
    return " ".join(mention.text for mention in rest) if is_bare and not is_listed else None


def _is_bare_structure(_: Sequence[Mention], mentions: Sequence[Mention]) -> str | None:
    """`LA, RA enlarged`, `aortic valve bicuspid`: a structure of which nothing is said that we know."""
    if not any(mention.kind in _SAYING for mention in mentions):
        return None
    for first, second in pairwise(mentions):
        if first.kind == second.kind == "structure" and {*first.names}.isdisjoint(second.names):
            return second.text
    parts: list[list[Mention]] = [[]]
    for mention in mentions:
        if mention.kind in ("comma", "colon", "and") or mention.text == ";":
            parts.append([])
        else:
            parts[-1].append(mention)
    for part in parts if not any(mention.kind == "colon" for mention in mentions) else ():
        structure = next((mention.text for mention in part if mention.kind == "structure"), None)
        is_of_normal = any(mention.text.startswith("of normal") for mention in part)
        kinds = {mention.kind for mention in part}
        is_graded_only = "grade" in kinds and kinds <= _UNSAID | {
            "grade",
            "verb",
        }  # `the left atrium is large`
        if structure and not is_of_normal and (kinds <= _UNSAID or is_graded_only):
            return structure
    return None


def _is_changed(spoken: Sequence[Mention], _: Sequence[Mention]) -> str | None:
    """`mildly dilated, now normal`, `was dilated and is now normal`, `to be dilated`."""
    has_said = has_denied = False
    for before, mention in pairwise(spoken):
        has_denied = has_denied or before.kind == "negated"  # `no oedema now`
        has_said = has_said or (before.kind in _CHANGING and not has_denied) or before.text in ("was", "were")
        is_changed = has_said and mention.text in ("now", "today", "currently")
        is_meant = before.kind == "to" and mention.text == "be"
        is_denied = before.text == "nor" and mention.kind == "predicate" and mention.name == "normal"
        if is_changed or is_meant or is_denied:
            return mention.text
    return None


def _is_elsewhere(spoken: Sequence[Mention], mentions: Sequence[Mention]) -> str | None:
    """`..., transmural there`: of a place that another part of the sentence names."""
    for mention, following in pairwise([*mentions, None]):
        if mention is not None and mention.text == "there" and not (following and is_finite(following)):
            return mention.text
    return None


def _is_coverage(spoken: Sequence[Mention], mentions: Sequence[Mention]) -> str | None:
    """`LGE basal to apical`: the slices that were taken, as like as not."""
    levels = {name for mention in mentions if mention.kind == "place" for name in mention.names}
    kinds = {mention.kind for mention in spoken}
    is_whole = levels == {*LEVELS} - {"apex"} or (kinds & {"to"} and levels <= {*LEVELS})
    is_bare = kinds <= {"name", "state", "place", "comma", "and", "to", "filler", "colon"}
    has_verb = any(is_finite(mention) for mention in mentions)
    return "basal to apical" if levels and is_whole and is_bare and not has_verb else None


def is_finite(mention: Mention) -> bool:
    """Return whether a mention is, or begins with, a verb that a sentence is built on."""
    return mention.kind == "verb" or mention.text.split()[0] in _FINITE


_CHECKS: Sequence[Callable[[Sequence[Mention], Sequence[Mention]], str | None]] = (
    _is_asked,
    _is_led,
    _is_cut,
    _is_any,
    _is_attribute,
    _is_definition,
    _is_limit,
    _is_list_of_denied,
    _is_coverage,
    _is_bare_structure,
    _is_changed,
    _is_elsewhere,
)
