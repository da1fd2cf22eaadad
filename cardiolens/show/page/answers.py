"""Answers of the first screen: the best model, whether images count, and selection, budget and prompting."""

import math
from collections import Counter
from collections.abc import Sequence

from cardiolens.score.claims import preregistered as declared
from cardiolens.score.claims import sentences
from cardiolens.score.claims.evidence import FEWEST_PATIENTS, Evidence
from cardiolens.score.claims.sentences import signed
from cardiolens.score.run_results.analyses import AnalysisRow
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.score.statistics.outcomes import INCOMPLETE
from cardiolens.show.page.differences import Difference, Reading, differences
from cardiolens.show.page.elements import Answer, Estimate
from cardiolens.show.page.page_data import Facts

_QUESTIONS = {
    "selector": "Does slice selection matter?",
    "budget": "Does the slice budget matter?",
    "prompt": "Does prompting matter?",
}
_SIGHT = "with images − without"
_NAMES = {"selector": "slice selection", "budget": "budget", "prompt": "prompt"}
_WORDS = {"selector": "slice selections", "budget": "budgets", "prompt": "prompts"}


def answers(facts: Facts) -> list[Answer]:
    """The declared comparison, then five answers, each no stronger than its intervals.

    What was not varied is said to be so.
    """
    varied = (_answer(facts, factor) for factor in _QUESTIONS)
    return [*_declared(facts), _best(facts), _images(facts), *varied]


def _declared(facts: Facts) -> list[Answer]:
    """The comparison that was declared before the run, where there is one."""
    told, primary = facts.told(declared.NAME), facts.specs[0].primary
    if not told.findings or primary is None:
        return []
    (finding,) = told.findings
    verdict = {"supported": "Yes", "not supported": f"No, {primary.versus} does"}
    question = f"Declared: does {primary.model} read better than {primary.versus} on tier {primary.tier}?"
    pair = f"{primary.model} − {primary.versus}"
    estimates = tuple(
        Estimate(
            pair, row["value"], row["low"], row["high"], "shown" if finding.verdict in verdict else "open"
        )
        for row in told.rows
        if row["metric"] == "primary" and not math.isnan(row["value"])
    )
    said = verdict.get(finding.verdict, "Cannot be told")
    return [Answer("declared", question, said, finding.sentence, estimates)]


def _best(facts: Facts) -> Answer:
    question = "Which model reads best?"
    found = sorted(_headlines(facts), key=lambda row: -float(row["value"]))
    if not found:
        said = "A headline needs arms at K = 16 with the standard prompt and without control."
        return Answer("model", question, "No headline score", said, differences=False)
    tied = [_model(row) for row in found if not _shown_lower(facts, row, found[0])]
    first = found[0]
    verdict = tied[0] if len(tied) == 1 else f"{len(tied)} of {len(found)} cannot be told apart"
    if len(found) == 1:
        verdict = "One model alone"
    said = f"Highest headline score on tier 1: {_model(first)} with {_interval(first)}, "
    said += f"{first['n_patients']} patients{_incomplete(first)}."
    if len(tied) > 1:
        said += f" Not shown to be lower: {', '.join(tied[1:4])}{' and others' if len(tied) > 4 else ''}."
    estimates = tuple(Estimate(_model(row), row["value"], row["low"], row["high"]) for row in found[:4])
    return Answer("model", question, verdict, said, estimates, differences=False)


def _headlines(facts: Facts) -> list[AnalysisRow]:
    """Defined headlines on tier 1; of simulated readers only where there is no other model."""
    rows = facts.of_arms(["primary"], "tier:1")
    found = [row for row in rows if str(row["arm_id"]).startswith(PREFIX) and not math.isnan(row["value"])]
    return [row for row in found if _model(row) not in facts.simulated] or found


def _shown_lower(facts: Facts, row: AnalysisRow, first: AnalysisRow) -> bool:
    """Return whether a headline is shown to be lower than the highest, by their paired difference."""
    pair = {row["arm_id"], first["arm_id"]}
    metrics = ["primary", "primary.holm_p", "primary.bounds"]
    rows = {
        found["metric"]: found
        for found in facts.of_pairs(metrics, "tier:1")
        if {found["arm_id"], found["versus_arm_id"]} == pair
    }
    if "primary" not in rows:
        return False
    return sentences.change("", "", rows["primary"], Evidence.of(rows, "primary")).verdict != "cannot tell"


def _incomplete(row: AnalysisRow) -> str:
    """The first words of a method that says how many items a cell lacks."""
    method = str(row["method"])
    return f" ({method.partition(';')[0]})" if method.startswith(INCOMPLETE) else ""


def _model(row: AnalysisRow) -> str:
    return str(row["arm_id"]).removeprefix(PREFIX)


def _interval(row: AnalysisRow) -> str:
    if math.isnan(row["low"]):
        return f"{row['value']:.1f} % (no interval)"
    return f"{row['value']:.1f} % (95 % CI {row['low']:.1f} to {row['high']:.1f})"


def _images(facts: Facts) -> Answer:
    """Whether frames raise the score above what the same arm gets without any."""
    question = "Do the images matter?"
    found = [one for one in _counted(facts, differences(facts, "control")) if one.theirs.control == "blind"]
    if not found:
        said = "No arm was asked without images (control=[none,blind]), so scores may rest on the text alone."
        return Answer("images", question, "Not tested", said)
    verdicts = Counter(one.change.verdict for one in found)
    raised, lowered, n = verdicts["supported"], verdicts["not supported"], len(found)
    verdict = f"Yes, in {raised} of {n} comparisons" if raised else "Cannot be told"
    if lowered and not raised:
        verdict = f"They lower the score in {lowered} of {n}"
    elif not raised and Counter(one.reading for one in found)["equivalent"] == n:
        verdict = f"No, within {MARGIN:g} points throughout"
    least = min(found, key=lambda one: float(one.row["value"]))
    said = (
        f"{n} comparisons with the same arm shown no image: {raised} are higher, {lowered} lower after "
        f"Holm over all that the run varied. Smallest gain {_chosen(least, _SIGHT)}."
    )
    return Answer("images", question, verdict, said, _estimates(found, _SIGHT))


def _answer(facts: Facts, factor: str) -> Answer:
    found = _counted(facts, differences(facts, factor))
    if not found:
        said = f"All arms that can be compared have the same {_NAMES[factor]}."
        return Answer(factor, _QUESTIONS[factor], "Not varied", said)
    counts = Counter(one.reading for one in found)
    said = _sentence(factor, found, counts)
    return Answer(factor, _QUESTIONS[factor], _verdict(len(found), counts), said, _estimates(found))


def _estimates(found: Sequence[Difference], comparison: str = "") -> tuple[Estimate, ...]:
    """Differences by their size; `comparison` says what was subtracted, where one word says it of all."""
    return tuple(
        Estimate(
            f"{comparison or one.comparison}, {one.ours.model}, {one.scope.replace(':', ' ')}",
            one.row["value"],
            one.row["low"],
            one.row["high"],
            one.reading,
        )
        for one in sorted(found, key=lambda one: float(one.row["value"]))
    )


def _counted(facts: Facts, found: Sequence[Difference]) -> list[Difference]:
    """Defined differences without control; of simulated readers only where there is no other model."""
    defined = [one for one in found if one.ours.control == "none" and not math.isnan(one.row["value"])]
    real = [one for one in defined if one.ours.model not in facts.simulated]
    return real or defined


def _verdict(n: int, counts: Counter[Reading]) -> str:
    if counts["shown"]:
        return f"Yes, in {counts['shown']} of {n} comparisons"
    if counts["equivalent"] == n:
        return f"No, within {MARGIN:g} points throughout"
    if counts["equivalent"]:
        return f"Not shown; {counts['equivalent']} of {n} equivalent"
    return "Cannot be told"


def _sentence(factor: str, found: Sequence[Difference], counts: Counter[Reading]) -> str:
    most = max(found, key=lambda one: abs(float(one.row["value"])))
    return (
        f"{len(found)} comparisons of {_WORDS[factor]}: {counts['shown']} show a difference after Holm over "
        f"all that the run varied, {counts['equivalent']} are equivalent within "
        f"{MARGIN:g} points. Largest change {_chosen(most)}."
    )


def _chosen(one: Difference, comparison: str = "") -> str:
    """A difference that was chosen among several by its size."""
    row = one.row
    interval = "no interval to rely on"
    if not math.isnan(row["low"]) and row["n_patients"] >= FEWEST_PATIENTS:
        interval = f"95 % CI {signed(row['low'])} to {signed(row['high'])}, not widened for the choice"
    return (
        f"{signed(row['value'])} points ({interval}): {comparison or one.comparison}, {one.ours.model}, "
        f"{one.scope.replace(':', ' ')}, {row['n_patients']} patients{_incomplete(row)}"
    )
