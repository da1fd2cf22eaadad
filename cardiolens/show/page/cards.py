"""Cards of the first screen: each with its result first, then whether it is claimed; cautions above them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from cardiolens.base.phrasing import counted
from cardiolens.config.sweep_factors import PrimaryQuestionSpec
from cardiolens.score.claims import declared
from cardiolens.score.claims.sentences import result, sentence, sides, size, status
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.comparisons import is_reliable
from cardiolens.score.statistics.factors import why_no_headline
from cardiolens.score.statistics.hypothesis_tests import MARGIN
from cardiolens.score.statistics.item_scores import RECIPROCAL, WITHIN
from cardiolens.score.statistics.metrics import CRITERION, ENTROPY_DEFICIT
from cardiolens.score.statistics.statistic import TIERS, Row
from cardiolens.score.statistics.verdict_rows import percent_read
from cardiolens.show.page.columns import caveats, ends, model_of, reading, score_words
from cardiolens.show.page.elements import Card, Estimate
from cardiolens.show.page.page_data import Facts

FACTORS: Mapping[str, tuple[str, str]] = {  # what a run may vary: the question, and its name
    "selector": ("Does slice selection matter?", "slice selection"),
    "budget": ("Does the slice budget matter?", "slice budget"),
    "prompt": ("Does prompting matter?", "prompt"),
}
NOT_ASKED = ("Not varied", "Not tested", "No model")  # verdicts on what the run did not ask
_MOST_NAMED = 8  # models of a sentence
_MOST_RANKED = 6  # models of a drawing; the landscape draws all


def cards(facts: Facts) -> list[Card]:
    """The cards of a page, in their order; simulated readers are in none."""
    question = "Which model reads best?"
    if facts.simulated.issuperset(facts.models):
        words = "Simulated readers only: their numbers test the software. The tables below have them."
        return [Card("model", question, "No model", words)]
    if facts.scores_of([WITHIN, RECIPROCAL], "subtask:") and not facts.scores_of(["primary"], "tier:"):
        words = "This run asked for numbers or rankings alone. No headline includes them; a section has them."
        return [Card("model", question, "No headline score", words)]
    return [*_declared(facts), _best(facts, question), _images(facts), *_factors(facts), *_effects(facts)]


def _declared(facts: Facts) -> list[Card]:
    """The declared comparison or question, where there is one."""
    primary = facts.specs[0].primary
    if primary is None:
        return []
    rows = [row for row in facts.findings if row["family"] == declared.FAMILY]
    is_beforehand = all(
        (manifest.get("primary") or {}).get("answered_before") == 0 for manifest in facts.manifests
    )
    words = (
        primary.words if isinstance(primary, PrimaryQuestionSpec) else f"{primary.model} − {primary.versus}"
    )
    when = "before the run" if is_beforehand else "after answers were there"
    question = f"Declared {when}: {words}, on tier {primary.tier}"
    if not rows:
        why = "The run has no two sides that could answer what was declared: nothing can be said."
        return [Card("declared", question, "No answer", why)]
    return [_of_rows("declared", question, rows)]


def _best(facts: Facts, question: str) -> Card:
    headlines = [
        row
        for row in facts.scores_of(["primary"], "tier:1")
        if (model := model_of(row)) and model not in facts.simulated and not math.isnan(row["value"])
    ]
    if not headlines:
        return Card(
            "model", question, "No headline score", too_few_items(facts) or why_no_headline(facts.arms)
        )
    headlines.sort(key=lambda row: -row["value"])
    best, others = headlines[0], headlines[1:]
    alike = [model_of(row) for row in others if not shown_lower(facts, row, best)]
    percent = percent_read(best)
    notes = [counted(best["n_patients"], "patient"), *caveats(best)]
    notes += [] if percent is None else [f"{percent} % of replies read"]
    words = (
        f"Highest headline score on tier 1: {model_of(best)} with {score_words(best)}, {', '.join(notes)}."
    )
    for row in facts.scores_of(["primary.constant"], "tier:1"):
        if row["arm_id"] == best["arm_id"] and not math.isnan(row["value"]):
            words += f" The best constant answer scores {row['value']:.1f} %."
    if others:
        words += f" Shown to be lower: {len(others) - len(alike)} of {len(others)} other models."
    if alike:
        first = alike if len(alike) <= _MOST_NAMED else alike[: _MOST_NAMED - 1]
        more = len(alike) - len(first)
        words += f" Not shown to be lower: {', '.join(first)}{f' and {more} more' if more else ''}."
    verdict = f"{model_of(best)}, {best['value']:.1f} %"
    drawn = headlines[:_MOST_RANKED]
    estimates = tuple(_estimate(model_of(row), row["value"], **ends(row)) for row in drawn)
    return Card("model", question, verdict, words, estimates, differences=False)


def shown_lower(facts: Facts, row: Mapping[str, Any], best: Mapping[str, Any]) -> bool:
    """Return whether a headline is shown to be lower than the highest of its tier, by their difference."""
    pair, tier = {model_of(row), model_of(best)}, int(best["scope"].removeprefix("tier:"))
    return any(
        row["decision"] in ("higher", "lower")
        for row in facts.findings
        if (row["factor"], row["tier"], row["metric"]) == ("model", tier, "primary")
        and {row["level"], row["versus"]} == pair
        and row["family"] != declared.FAMILY
    )


def _images(facts: Facts) -> Card:
    """Whether frames raise the score above what the same arm gets without any."""
    question = "Do the images matter?"
    if rows := [row for row in _pooled(facts, "control") if row["versus"] == "blind"]:
        return _of_rows("images", question, rows, facts)
    words = "No model was asked without images (control=[none,blind]), so scores may rest on the text alone."
    return Card("images", question, "Not tested", words)


def _factors(facts: Facts) -> Iterator[Card]:
    """Whether what the run may vary changes the score."""
    for factor, (question, name) in FACTORS.items():
        if rows := _pooled(facts, factor):
            yield _of_rows(factor, question, rows, facts)
        else:
            words = f"No model was asked at two levels of the {name} in settings that all models share."
            yield Card(factor, question, "Not varied", words)


def _effects(facts: Facts) -> Iterator[Card]:
    """Caution and collapse on tier 1, and the way from image understanding to diagnosis, where compared."""
    for row in _pooled(facts, "prompt", CRITERION):
        if row["tier"] == 1:
            question = f"Does prompt {row['level']} make models more cautious?"
            yield _of_rows(f"caution-{row['level']}", question, [row], facts)
    if rows := [row for row in _pooled(facts, "collapse", ENTROPY_DEFICIT) if row["tier"] == 1]:
        yield _of_rows("collapse", "Do models fall back on few categories?", rows, facts)
    way = {"factor": "tier", "metric": "corrected_accuracy", "versus": TIERS[0], "level": TIERS[2]}
    if rows := [row for row in facts.findings if way.items() <= row.items()]:
        yield _of_rows("tiers", "Do models that read images also reach the diagnosis?", rows)


def _pooled(facts: Facts, factor: str, metric: str = "primary") -> list[Row]:
    """The rows of a factor over all models."""
    rows = [row for row in facts.findings if (row["factor"], row["metric"]) == (factor, metric)]
    return [row for row in rows if row["n_models"] is not None and row["family"] != declared.FAMILY]


def _of_rows(name: str, question: str, rows: Sequence[Row], facts: Facts | None = None) -> Card:
    """A card on rows of comparisons: result first, then whether it is claimed."""
    metric = rows[0]["metric"]
    over = ""
    if (number := rows[0]["n_models"]) is not None:
        over = f"Over {counted(number, 'model')}. " if number > 1 else "One model. "
    estimates = tuple(
        _estimate(
            f"{sides(row)}, tier {row['tier']}",
            row["difference"],
            row["low"] if is_reliable(row) else math.nan,
            row["high"] if is_reliable(row) else math.nan,
            tone=reading(row),
            models=() if facts is None else _of_models(facts, row),
        )
        for row in rows
        if not math.isnan(row["difference"])
    )
    is_score = metric == "primary"
    unit: Literal["points", "z"] = "z" if metric == CRITERION else "points"
    words = over + " ".join(_sentences(rows))
    return Card(name, question, _verdict(rows), words, estimates, unit=unit, has_band=is_score)


def _estimate(label: str, value: float, low: float, high: float, **more: Any) -> Estimate:
    """An estimate; without an interval to rely on, both ends are its value."""
    low, high = (value, value) if math.isnan(low) else (low, high)
    return Estimate(label, value, low, high, **more)


def _sentences(rows: Sequence[Row]) -> Iterator[str]:
    """What is claimed, or else the largest difference; a table has all comparisons but what was declared."""
    claimed = [row for row in rows if row["decision"] in ("higher", "lower")]
    others = [row for row in rows if row["margin"] != "within"]
    shown = rows if len(rows) == 1 else claimed or _largest(others)
    for row in shown:
        words = f"{_where(row)}: {result(row)}, {status(row)}."
        yield _capital(sentence(row) if row["factor"] == "tier" else words)
    rest = [row for row in rows if row not in shown]
    if equivalent := [row for row in rest if row["margin"] == "within"]:
        yield f"Equivalent within {MARGIN:g} points: {'; '.join(map(_where, equivalent))}."
    if more := len(rest) - len(equivalent):
        yield f"{counted(more, 'further comparison')}, not claimed."


def _largest(rows: Sequence[Row]) -> list[Row]:
    """The row with the largest difference, if one is defined; else the first."""
    defined = [row for row in rows if not math.isnan(row["difference"])]
    return [max(defined, key=lambda row: abs(row["difference"]))] if defined else [*rows[:1]]


def _where(row: Row) -> str:
    """The sides of a comparison, and its tier."""
    return sides(row) if row["factor"] == "tier" else f"{sides(row)} on tier {row['tier']}"


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _verdict(rows: Sequence[Row]) -> str:
    """The result in a few words, and whether it is claimed."""
    claimed = [row for row in rows if row["decision"] in ("higher", "lower")]
    defined = [row for row in rows if not math.isnan(row["difference"])]
    if not defined:
        return "No score to compare"
    if claimed:
        largest = max(claimed, key=lambda row: abs(row["difference"]))
        among = f", the largest of {len(claimed)}" if len(claimed) > 1 else ""
        return _capital(f"{_where(largest)}: {size(largest)}, claimed{among}")
    if all(row["margin"] == "within" for row in rows):
        tiers = sorted({row["tier"] for row in rows})
        return f"Within {MARGIN:g} points on {' and '.join(f'tier {tier}' for tier in tiers)}, claimed"
    largest = _largest(defined)[0]
    state = "described" if largest["p_adjusted"] is None else "not claimed"
    return _capital(f"{_where(largest)}: {size(largest)}, {state}")


def _of_models(facts: Facts, pooled: Row) -> tuple[float, ...]:
    """The same difference in each of several models, where it is defined."""
    names = ("factor", "level", "versus", "metric", "tier")
    values = [
        row["difference"]
        for row in facts.findings
        if row["model"] is not None and all(row[name] == pooled[name] for name in names)
    ]
    return tuple(value for value in values if not math.isnan(value)) if len(values) > 1 else ()


def too_few_items(facts: Facts) -> str:
    """Name the tiers without a score, and how many items are needed per subtask; empty if all have scores."""
    rows = [row for row in facts.scores_of(["primary"], "tier:") if facts.arm(row["arm_id"]) is not None]
    scored = {row["scope"] for row in rows if row["n_items"]}
    unscored = sorted({row["scope"] for row in rows} - scored)
    if not unscored:
        return ""
    tiers = {int(tier.removeprefix("tier:")) for tier in unscored}
    sizes = {
        name: row["n_items"]
        for row in facts.scores_of(["primary"], "subtask:")
        if (name := row["scope"].removeprefix("subtask:")) in facts.subtasks
        and facts.subtasks[name].tier in tiers
    }
    largest = max(sizes, key=lambda name: sizes[name], default="")
    has = f"; the largest, {largest}, has {sizes[largest]}" if largest else ""
    needed = facts.specs[0].statistics.min_n
    return (
        f"No score on {' and '.join(tier.replace(':', ' ') for tier in unscored)}: no subtask has "
        f"statistics.min_n={needed} items{has}. Ask more studies, or lower statistics.min_n."
    )


def cautions(facts: Facts) -> list[str]:
    """Return the cautions of a run, the gravest first."""
    return [*_cautions(facts), *(str(row["sentence"]) for row in facts.analysis("hospitals"))]


def _cautions(facts: Facts) -> Iterator[str]:
    dataset = facts.specs[0].dataset
    if any(spec.dataset.phantom is not None for spec in facts.specs):
        yield (
            "A synthetic cohort: phantoms that this software draws. No score here says how well a model "
            "reads a patient."
        )
        models = (model for spec in facts.specs for model in spec.model)
        for name in dict.fromkeys(model.name for model in models if model.source.startswith("packaged/")):
            yield (
                f"{name} was trained on phantoms of the same kind; with options in another order it answers "
                "fewer questions right."
            )
    if facts.simulated.issuperset(facts.models):
        yield "Simulated readers only: these numbers test the software, not a model."
    if facts.n_patients < FEWEST_FOR_CLAIM:
        yield (
            f"{facts.patients_in_words}: with fewer than {FEWEST_FOR_CLAIM} this page claims nothing, "
            "and no interval in it is one to rely on."
        )
    if "unverified" in dataset.allow:
        yield "Answers that nobody verified were allowed (dataset.allow=[unverified])."
    if "public_hearts" in dataset.allow:
        yield (
            "Pictures and labels are of public sets, which may be in the training data of any model: a high "
            "score may be memory. The answers are labels of the sets; nobody verified them for these "
            "questions."
        )
    if dataset.has_pictures:
        yield (
            "Closed questions of a public benchmark alone. Its pictures, questions and answers may be in the "
            "training data of any model: a high score may be memory."
        )
    scored = {arm.model for row in facts.scores_of(["primary"], "tier:") if (arm := facts.arm(row["arm_id"]))}
    if scored and (unscored := [model for model in facts.models if model not in scored]):
        yield f"Not in the scores, as no reply was judged: {', '.join(unscored)}."
    versions = sorted({str(manifest["cardiolens"]) for manifest in facts.manifests})
    if len(versions) > 1:
        yield f"The runs were made by versions {', '.join(versions)} of CardioLens."
    if facts.is_unfinished:
        yield "Some requests have no answer yet: the scores are not final."
    if too_few := too_few_items(facts):
        yield too_few
