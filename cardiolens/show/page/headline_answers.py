"""Answers of the first screen: the best model, whether images count, and selection, budget and prompting."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from cardiolens.base.phrasing import counted
from cardiolens.config.sweep_factors import PrimaryQuestionSpec
from cardiolens.score.claims import preregistered, sentences
from cardiolens.score.claims.evidence_analysis import Evidence, interval_of
from cardiolens.score.claims.sentences import Side, signed
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.headlines import PREFIX, why_no_headline
from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.score.statistics.outcomes import INCOMPLETE, percent_read
from cardiolens.show.page.difference_table import Difference, Reading, differences
from cardiolens.show.page.elements import Answer, Estimate
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.pooled_differences import PooledDifference, pooled_differences
from cardiolens.show.page.too_few_items import too_few_items

_QUESTIONS = {
    "selector": "Does slice selection matter?",
    "budget": "Does the slice budget matter?",
    "prompt": "Does prompting matter?",
}
_VERDICTS: Mapping[str, Mapping[Side | None, str]] = {  # of a declared question
    "difference": {"above": "Yes, it is higher", "below": "Yes, it is lower"},
    "equivalence": {
        "within": "Yes",
        "beyond": "No, it differs by more",
        **dict.fromkeys(("above", "below"), "It differs; by how much cannot be told"),
    },
}
_MOST_NAMED = 8  # models of a sentence
_MOST_RANKED = 6  # models of a drawing; the landscape draws all
_NO_SCORE = "No score to compare"
_SIGHT = "with images − without"
_NAMES = {"selector": "slice selection", "budget": "budget", "prompt": "prompt"}
_WORDS = {"selector": "slice selections", "budget": "budgets", "prompt": "prompts"}


def answers(facts: Facts) -> list[Answer]:
    """The declared comparison, then five answers, each no stronger than its intervals.

    A factor that the run did not vary gets the verdict `Not varied`.
    """
    by_factor = (_answer(facts, factor) for factor in _QUESTIONS)
    return [*_primary_comparison(facts), _best(facts), _images(facts), *by_factor]


def _primary_comparison(facts: Facts) -> list[Answer]:
    """The declared comparison, where there is one; the sentence says when it was declared."""
    analysis, primary = facts.analysis(preregistered.NAME), facts.specs[0].primary
    if not analysis.findings or primary is None:
        return []
    (finding,) = analysis.findings
    declared = "Declared" if _is_beforehand(facts) else "Declared after looking"
    if isinstance(primary, PrimaryQuestionSpec):
        verdict = _VERDICTS[primary.claim]
        does = "the same within 2 points" if primary.claim == "equivalence" else "different"
        question = f"{declared}: is the score {does} with {primary.words}, on tier {primary.tier}?"
        pair = primary.words
    else:
        verdict = {"above": "Yes", "below": f"No, {primary.versus} does"}
        question = (
            f"{declared}: does {primary.model} read better than {primary.versus} on tier {primary.tier}?"
        )
        pair = f"{primary.model} − {primary.versus}"
    estimates = tuple(
        Estimate.of(pair, row, "open" if finding.side is None else "shown")
        for row in analysis.rows
        if row["metric"] == "primary" and not math.isnan(row["value"])
    )
    headline = verdict.get(finding.side, "Cannot be told")
    return [Answer("declared", question, headline, finding.sentence, estimates)]


def _is_beforehand(facts: Facts) -> bool:
    """Return whether no answer of either model was there when the comparison was declared."""
    return all((manifest.get("primary") or {}).get("answered_before") == 0 for manifest in facts.manifests)


def _best(facts: Facts) -> Answer:
    question = "Which model reads best?"
    headlines = sorted(_headlines(facts), key=lambda row: -float(row["value"]))
    if not headlines:
        if _has_headline_arms(facts) and (why := too_few_items(facts)):
            return Answer("model", question, _NO_SCORE, why, differences=False)
        return Answer("model", question, "No headline score", why_no_headline(facts.arms), differences=False)
    best_models = [_model(row) for row in headlines if not shown_lower(facts, row, headlines[0])]
    best = headlines[0]
    verdict = (
        best_models[0]
        if len(best_models) == 1
        else f"{len(best_models)} of {len(headlines)} cannot be told apart"
    )
    if len(headlines) == 1:
        verdict = "One model alone"
    sentence = f"Highest headline score on tier 1: {_model(best)} with {_interval(best)}, "
    percent = percent_read(best)
    read = "" if percent is None else f", {percent} % of replies read"
    sentence += f"{counted(best['n_patients'], 'patient')}{_incomplete(best)}{read}."
    if len(best_models) > 1:
        sentence += f" Not shown to be lower: {_listed(best_models[1:])}."
    estimates = tuple(Estimate.of(_model(row), row) for row in headlines[:_MOST_RANKED])
    return Answer("model", question, verdict, sentence, estimates, differences=False)


def _has_headline_arms(facts: Facts) -> bool:
    return any(str(row["arm_id"]).startswith(PREFIX) for row in facts.of_arms(["primary"], "tier:"))


def _headlines(facts: Facts) -> list[AnalysisRow]:
    """Defined headlines on tier 1; of simulated readers only where there is no other model."""
    rows = facts.of_arms(["primary"], "tier:1")
    headlines = [
        row for row in rows if str(row["arm_id"]).startswith(PREFIX) and not math.isnan(row["value"])
    ]
    return [row for row in headlines if _model(row) not in facts.simulated] or headlines


def shown_lower(facts: Facts, row: AnalysisRow, best: AnalysisRow) -> bool:
    """Return whether a headline is shown to be lower than the highest of its tier, by their difference."""
    pair = {row["arm_id"], best["arm_id"]}
    metrics = ["primary", "primary.holm_p", "primary.bounds"]
    rows = {
        difference["metric"]: difference
        for difference in facts.of_pairs(metrics, str(best["scope"]))
        if {difference["arm_id"], difference["versus_arm_id"]} == pair
    }
    if "primary" not in rows:
        return False
    return sentences.change("", "", rows["primary"], Evidence.of(rows, "primary")).side is not None


def _listed(models: Sequence[str]) -> str:
    """Names of models; where they are many, the first, and how many more there are."""
    first = models if len(models) <= _MOST_NAMED else models[: _MOST_NAMED - 1]
    more = len(models) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def _incomplete(row: AnalysisRow) -> str:
    """The first words of a method that says how many items a cell lacks."""
    method = str(row["method"])
    return f" ({method.partition(';')[0]})" if method.startswith(INCOMPLETE) else ""


def _model(row: AnalysisRow) -> str:
    return str(row["arm_id"]).removeprefix(PREFIX)


def _interval(row: AnalysisRow) -> str:
    if math.isnan(interval_of(row).low):
        return f"{row['value']:.1f} % (no interval to rely on)"
    return f"{row['value']:.1f} % (95 % CI {row['low']:.1f} to {row['high']:.1f})"


def _images(facts: Facts) -> Answer:
    """Whether frames raise the score above what the same arm gets without any."""
    question = "Do the images matter?"
    if pooled := _pooled(facts, "control", question, theirs="blind"):
        return replace(pooled, name="images")
    comparisons = [
        difference
        for difference in _usable(facts, differences(facts, "control"))
        if difference.theirs.control == "blind"
    ]
    if not comparisons and _is_varied(facts, "control") and (why := too_few_items(facts)):
        return Answer("images", question, _NO_SCORE, why)
    if not comparisons:
        sentence = (
            "No arm was asked without images (control=[none,blind]), so scores may rest on the text alone."
        )
        return Answer("images", question, "Not tested", sentence)
    sides = Counter(difference.change.side for difference in comparisons)
    n_higher, n_lower, n = sides["above"], sides["below"], len(comparisons)
    verdict = f"Yes, in {n_higher} of {counted(n, 'comparison')}" if n_higher else "Cannot be told"
    if n_lower and not n_higher:
        verdict = f"They lower the score in {n_lower} of {n}"
    elif not n_higher and Counter(difference.reading for difference in comparisons)["equivalent"] == n:
        verdict = f"No, within {MARGIN:g} points throughout"
    smallest = min(comparisons, key=lambda difference: float(difference.row["value"]))
    sentence = (
        f"{counted(n, 'comparison')} with the same arm shown no image: {n_higher} higher, {n_lower} lower "
        f"{_tested(comparisons)}. Smallest gain {_extreme(smallest, _SIGHT)}."
    )
    return Answer("images", question, verdict, sentence, _estimates(comparisons, _SIGHT))


def _pooled(facts: Facts, factor: str, question: str, theirs: str = "") -> Answer | None:
    """The answer over all models; None where no model was asked at two levels, as with simulated readers."""
    of_factor = [
        difference
        for difference in pooled_differences(facts)
        if difference.factor == factor and theirs in ("", difference.theirs)
    ]
    differences = [difference for difference in of_factor if not difference.model and not difference.is_slope]
    if not differences:
        return None
    models = dict.fromkeys(difference.model for difference in of_factor if difference.model)
    over = f"Over {len(models)} models" if len(models) > 1 else f"For {next(iter(models), 'one model')}"
    patients = counted(max(int(difference.row["n_patients"]) for difference in differences), "patient")
    numbers = "; ".join(
        f"{comparison}: {', '.join(map(_points, of_levels))}"
        for comparison, of_levels in groupby(differences, key=lambda difference: difference.comparison)
    )
    n_tested = sum(difference.is_tested for difference in differences)
    test = "Tested with all questions of the run (Holm)." if n_tested else "Not tested."
    sentence = f"{over}, {patients}, {numbers}. {test}"
    estimates = tuple(
        Estimate.of(
            f"{difference.comparison}, {difference.tier}",
            difference.row,
            difference.reading,
            _of_models(difference, of_factor),
        )
        for difference in differences
    )
    return Answer(factor, question, _over_tiers(differences), sentence, estimates)


def _of_models(pooled: PooledDifference, differences: Sequence[PooledDifference]) -> tuple[float, ...]:
    """The same difference in each of several models, where it is defined."""
    values = [
        float(difference.row["value"])
        for difference in differences
        if difference.model and (difference.comparison, difference.scope) == (pooled.comparison, pooled.scope)
    ]
    return tuple(value for value in values if not math.isnan(value)) if len(values) > 1 else ()


def _points(difference: PooledDifference) -> str:
    row = difference.row
    value = f"{signed(row['value'])} on {difference.tier}"
    if math.isnan(interval_of(row).low):
        return f"{value} (no interval to rely on, not tested)"
    test = "" if difference.is_tested else ", not tested"
    return f"{value} (95 % CI {signed(row['low'])} to {signed(row['high'])}{test}){_incomplete(row)}"


def _over_tiers(differences: Sequence[PooledDifference]) -> str:
    """The verdict over the tiers of a factor."""
    differing, equivalent = (_tiers(differences, reading) for reading in ("shown", "equivalent"))
    if differing:
        return f"Yes, on {differing}"
    if all(difference.reading == "equivalent" for difference in differences):
        return f"No, within {MARGIN:g} points throughout"
    return f"Not shown; within {MARGIN:g} points on {equivalent}" if equivalent else "Cannot be told"


def _tiers(differences: Sequence[PooledDifference], reading: str) -> str:
    """The tiers that have a reading, in words, e.g. tiers 1 and 3."""
    numbers = sorted(
        {
            difference.scope.removeprefix("tier:")
            for difference in differences
            if difference.reading == reading
        }
    )
    if len(numbers) < 2:
        return f"tier {numbers[0]}" if numbers else ""
    return f"tiers {', '.join(numbers[:-1])} and {numbers[-1]}"


def _answer(facts: Facts, factor: str) -> Answer:
    if pooled := _pooled(facts, factor, _QUESTIONS[factor]):
        return pooled
    comparisons = _usable(facts, differences(facts, factor))
    if not comparisons and _is_varied(facts, factor) and (why := too_few_items(facts)):
        return Answer(factor, _QUESTIONS[factor], _NO_SCORE, why)
    if not comparisons:
        sentence = f"All arms that can be compared have the same {_NAMES[factor]}."
        return Answer(factor, _QUESTIONS[factor], "Not varied", sentence)
    counts = Counter(difference.reading for difference in comparisons)
    sentence = _sentence(factor, comparisons, counts)
    return Answer(
        factor, _QUESTIONS[factor], _verdict(len(comparisons), counts), sentence, _estimates(comparisons)
    )


def _is_varied(facts: Facts, factor: str) -> bool:
    return len({getattr(arm, factor) for arm in facts.arms}) > 1


def _estimates(comparisons: Sequence[Difference], comparison: str = "") -> tuple[Estimate, ...]:
    """Differences sorted by value; `comparison` replaces the label of each if it is the same for all."""
    return tuple(
        Estimate.of(
            f"{comparison or difference.comparison}, {_model_and_scope(difference)}",
            difference.row,
            difference.reading,
        )
        for difference in sorted(comparisons, key=lambda difference: float(difference.row["value"]))
    )


def _usable(facts: Facts, comparisons: Sequence[Difference]) -> list[Difference]:
    """Defined differences without control; of simulated readers only where there is no other model."""
    usable = [
        difference
        for difference in comparisons
        if difference.ours.control == "none" and not math.isnan(difference.row["value"])
    ]
    real = [difference for difference in usable if difference.ours.model not in facts.simulated]
    return real or usable


def _verdict(n: int, counts: Counter[Reading]) -> str:
    if counts["shown"]:
        return f"Yes, in {counts['shown']} of {counted(n, 'comparison')}"
    if counts["equivalent"] == n:
        return f"No, within {MARGIN:g} points throughout"
    if counts["equivalent"]:
        return f"Not shown; {counts['equivalent']} of {n} equivalent"
    return "Cannot be told"


def _sentence(factor: str, comparisons: Sequence[Difference], counts: Counter[Reading]) -> str:
    largest = max(comparisons, key=lambda difference: abs(float(difference.row["value"])))
    return (
        f"{counted(len(comparisons), 'comparison')} of {_WORDS[factor]}: {counts['shown']} with a difference "
        f"{_tested(comparisons)}, {counts['equivalent']} equivalent within "
        f"{MARGIN:g} points. Largest change {_extreme(largest)}."
    )


def _tested(comparisons: Sequence[Difference]) -> str:
    """The test of several differences in words, and how many of them have one."""
    n_tested = sum(difference.adjusted_p is not None for difference in comparisons)
    if not n_tested:
        return "(none tested)"
    some = "" if n_tested == len(comparisons) else f", {n_tested} of {len(comparisons)} tested"
    return f"(Holm over all that the run varied{some})"


def _extreme(difference: Difference, comparison: str = "") -> str:
    """The largest or smallest of several differences in words; its interval ignores that it was selected."""
    row = difference.row
    interval = "no interval to rely on"
    if not math.isnan(interval_of(row).low):
        interval = f"95 % CI {signed(row['low'])} to {signed(row['high'])}, not widened for the choice"
    return (
        f"{signed(row['value'])} points ({interval}): {comparison or difference.comparison}, "
        f"{_model_and_scope(difference)}, {counted(row['n_patients'], 'patient')}{_incomplete(row)}"
    )


def _model_and_scope(difference: Difference) -> str:
    return f"{difference.ours.model}, {difference.scope.replace(':', ' ')}"
