"""Sentences made from rows of comparisons: the result first, then whether it is claimed. Never read back."""

import math
from collections.abc import Mapping

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.comparisons import comes_of_reading, is_reliable, rests_on_same
from cardiolens.score.statistics.counting import EXTRA_METRICS
from cardiolens.score.statistics.hypothesis_tests import MARGIN, detectable_difference, difference_words
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, ENTROPY_DEFICIT, SEVERITY_SHIFT
from cardiolens.score.statistics.statistic import OWN_UNIT, Row

_NORMAL_95 = 1.959963984540054
_LEAST_P = 0.001  # smaller p-values are printed as "p < 0.001"
SUBJECTS: Mapping[str, str] = {
    "primary": "score",
    CRITERION: "criterion for calling an abnormality (higher: more cautious)",
    D_PRIME: "d′ (normal against abnormal)",
    SEVERITY_SHIFT: "severity of grades",
    "mean_cardinality": "number of options picked",
    "precision": "precision",
    "recall": "recall",
    ENTROPY_DEFICIT: "entropy of the truth beyond that of answers",
    "corrected_accuracy": "accuracy corrected for guessing",
    "exact_answers": "share of exact answers",
}
_LEVELS: Mapping[str, str] = {  # a level of a factor in words
    "selector": "{} selection",
    "budget": "slice budget {}",
    "prompt": "{} prompt",
    "control": "control {}",
    "wording": "wording {}",
    "model": "{}",
}
CONTROLS: Mapping[str, str] = {  # what stands against the arm without a control
    "blind": "without images",
    "captions": "captions alone",
    "blank": "black frames",
    "other_patient": "another patient's frames",
    "shuffled_options": "shuffled options",
    "reversed_options": "reversed options",
    "lesion": "hearts without their lesions",
    "repeat": "asked again",
}


def sentence(row: Row) -> str:
    """The result of a comparison in one sentence."""
    return f"{what(row)}: {result(row)}, {status(row)}."


def what(row: Row) -> str:
    """What is compared, where, and over what."""
    subject = SUBJECTS.get(row["metric"], row["metric"])
    over = ""
    if row["n_models"] is not None:
        over = " over all models" if row["n_models"] > 1 else ""
    elif row["model"] is not None:
        over = f" of {row['model']}"
    where = f" on tier {row['tier']}" if row["factor"] != "tier" else ""
    return f"{sides(row)}, {subject}{where}{over}"


def sides(row: Row) -> str:
    """Both levels of a comparison in words, e.g. random selection − clinical."""
    factor, level, versus = row["factor"], row["level"], row["versus"]
    if factor == "control":
        return f"as asked − {CONTROLS.get(versus, versus)}" if versus != "blind" else "with images − without"
    if factor == "tier":
        return f"{level.replace(':', ' ')} − {versus.replace(':', ' ')}"
    if factor == "collapse":
        return "spread of the truth − of answers"
    if factor == "cohort":
        return f"full cohort − its {versus} part"
    return f"{_LEVELS.get(factor, '{}').format(level)} − {versus}"


def result(row: Row) -> str:
    """The estimate first: by how much, its interval, and what it rests on."""
    if row["difference"] is None or math.isnan(row["difference"]):
        return "undefined"
    return f"{size(row)} ({interval(row, 2 if row['metric'] in OWN_UNIT else 1)}; {basis(row)})"


def size(row: Row) -> str:
    """By how much the first side is higher or lower."""
    places, unit = (2, "") if row["metric"] in OWN_UNIT else (1, " points")
    number = f"{abs(row['difference']):.{places}f}"
    if not float(number):
        return f"a difference of {number}{unit}"
    return f"{'higher' if row['difference'] > 0 else 'lower'} by {number}{unit}"


def interval(row: Row, places: int = 1) -> str:
    """The 95 % interval in words: of how much lower if all of it is lower, else with signs."""
    if not is_reliable(row):
        few = row["n_patients"] < FEWEST_FOR_CLAIM
        return f"no interval with fewer than {FEWEST_FOR_CLAIM} patients" if few else "no interval"
    low, high, of = row["low"], row["high"], ""
    if row["difference"] < 0 and high < 0:
        low, high = -high, -low
    elif row["difference"] <= 0 or low < 0:
        of = " of the difference"
    return f"95 % CI{of} {signed(low, places)} to {signed(high, places)}"


def basis(row: Row) -> str:
    """How many patients and items a row rests on, and what fell out."""
    words = f"{counted(row['n_patients'], 'patient')}, {counted(row['n_items'], 'item')}"
    places = 2 if row["metric"] in OWN_UNIT else 1
    if row.get("n_dropped"):
        ends = (signed(row[name], places) for name in ("low_bound", "high_bound"))
        words += "; incomplete, " if row.get("is_incomplete") else "; "
        words += f"{counted(row['n_dropped'], 'item')} fell out or were not read, with them between "
        words += " and ".join(ends)
    if comes_of_reading(row):
        value = signed(row["read_difference"], places)
        words += (
            f"; {row['n_unread']} against {row['n_unread_versus']} replies were cut, refused or not parsed"
        )
        words += f", and on {counted(row['n_read'], 'item')} read on both sides it is {value}"
    return words


def status(row: Row) -> str:
    """Whether a difference or an equivalence is claimed, by what test, or why not."""
    if row["p_adjusted"] is None:
        return "described, not tested"
    if row["decision"] in ("higher", "lower"):
        beyond = f", by more than {MARGIN:g} points" if row["margin"] == "beyond" else ""
        return f"claimed{beyond} ({test_words(row)})"
    if row["margin"] == "within":
        how = ", declared before the run and tested alone" if row["adjustment"] == "alone" else " after Holm"
        return f"equivalent within {MARGIN:g} points ({chance(row['within_p_adjusted'])}{how})"
    if row["adjustment"] == "fdr":
        return f"explored, not claimed ({test_words(row)})"
    return f"not claimed ({test_words(row)}{_why_open(row)})"


def test_words(row: Row) -> str:
    """The adjusted p of a row, and over how many tests."""
    p = row["p_adjusted"]
    if row["adjustment"] == "alone":
        return f"{chance(row['p'])}, declared before the run and tested alone"
    if p is None or math.isnan(p):
        return "not tested"
    if row["adjustment"] == "fdr":
        return f"false discovery rate {chance(p).removeprefix('p ').removeprefix('= ')}"
    return f"{chance(p)} after Holm over {row['family_size']}"


def _why_open(row: Row) -> str:
    """What keeps a difference from being claimed: reading, identical requests, or too little power."""
    if row["metric"] in EXTRA_METRICS and comes_of_reading(row):
        return "; it comes of replies that were not read"
    if row.get("low_90") is not None and rests_on_same(row):
        return "; it rests on identical requests"
    if not is_reliable(row) or row["high"] == row["low"]:
        return ""
    error = (row["high"] - row["low"]) / (2 * _NORMAL_95)
    size = detectable_difference(error, row["family_size"] or 1)
    words = difference_words(size) if row["metric"] not in OWN_UNIT else f"a difference of {size:.2f}"
    return f"; this cohort detects {words} with 80 % power"


def chance(p: float, digits: int = 2) -> str:
    """Format a p-value; below 0.001 neither resampling nor a normal tail is exact."""
    if math.isnan(p):
        return "not tested"
    return f"p < {_LEAST_P:g}" if p < _LEAST_P else f"p = {p:.{digits}g}"


def signed(value: float, places: int = 1) -> str:
    """Format a number, with a typographic minus sign."""
    return "undefined" if math.isnan(value) else f"{value:.{places}f}".replace("-", "−")
