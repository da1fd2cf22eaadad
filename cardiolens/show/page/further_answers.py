"""Further answers of the first screen over all models: caution, collapse, and the way from tier to tier."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cardiolens.score.claims import landscape, question_analysis
from cardiolens.score.claims.evidence_analysis import Rows, places
from cardiolens.score.claims.sentences import Finding, Side
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.collapse import ENTROPY_DEFICIT
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.pooled_questions import COLLAPSE
from cardiolens.score.statistics.rows import TIERS
from cardiolens.score.statistics.signal_detection import CRITERION
from cardiolens.show.page.elements import Answer, Estimate
from cardiolens.show.page.page_data import Facts

_COLLAPSE: Mapping[Side | None, str] = {"above": "Yes", "below": "No"}
_CAUTION: Mapping[Side | None, str] = {"above": "Yes", "below": "No, bolder"}
_DECLINE: Mapping[Side | None, str] = {"above": "Higher on tier 3", "below": "Lower on tier 3"}
_OPEN = "Cannot be told"


def further_answers(facts: Facts) -> list[Answer]:
    """Answers to the questions that models of a run were asked; simulated readers are no models."""
    return [*_caution(facts), *_collapse(facts), *_decline(facts)]


def _caution(facts: Facts) -> list[Answer]:
    """Whether a prompt moves the criterion for calling an abnormality, on tier 1."""
    return [
        Answer(
            f"caution-{effect.ours}",
            f"Does prompt {effect.ours} make models more cautious?",
            _CAUTION.get(effect.finding.side, _OPEN),
            effect.finding.sentence,
            effect.estimates(f"{effect.ours} − {effect.theirs}"),
            unit="z",
            has_band=False,
        )
        for effect in _pooled_effects(facts)
        if (effect.factor, effect.metric) == ("prompt", CRITERION)
    ]


def _collapse(facts: Facts) -> list[Answer]:
    """Whether answers spread over fewer categories than the truth, on tier 1."""
    question = "Do models fall back on few categories?"
    return [
        Answer(
            COLLAPSE,
            question,
            _COLLAPSE.get(effect.finding.side, _OPEN),
            effect.finding.sentence,
            effect.estimates("entropy of the truth − of answers"),
            has_band=False,
        )
        for effect in _pooled_effects(facts)
        if effect.metric == ENTROPY_DEFICIT
    ]


def _decline(facts: Facts) -> list[Answer]:
    """Whether accuracy corrected for guessing changes from image understanding to diagnosis."""
    unreal = {f"{PREFIX}{model}" for model in facts.simulated}
    rows = [row for row in facts.analysis("landscape").rows if row["arm_id"] not in unreal]
    finding = landscape.declines(rows).get((TIERS[0], TIERS[2]))
    if finding is None:
        return []
    verdict = _DECLINE.get(finding.side, _OPEN)
    question = "Do models that read images also reach the diagnosis?"
    return [Answer("tiers", question, verdict, finding.sentence, differences=False)]


@dataclass(frozen=True, slots=True)
class _PooledEffect:
    """What a level does to a metric other than the score, over all models, on tier 1."""

    factor: str
    ours: str
    theirs: str
    metric: str
    finding: Finding
    row: AnalysisRow
    models: tuple[float, ...]

    def estimates(self, label: str) -> tuple[Estimate, ...]:
        """The effect over all models, with that of each below it."""
        tone: Literal["shown", "open"] = "open" if self.finding.side is None else "shown"
        label = f"{label}, {TIERS[0].replace(':', ' ')}"
        return (Estimate.of(label, self.row, tone, self.models),)


def _pooled_effects(facts: Facts) -> list[_PooledEffect]:
    """Effects over all models on tier 1, by factor, level and metric."""
    by_place = places(facts.analysis(question_analysis.NAME).rows)
    models = question_analysis.models_behind(by_place)
    effects = []
    for place, names in models.items():
        rows: Rows = by_place[place]
        if place[2] != TIERS[0]:
            continue
        of_models = [by_place[f"{place[0]}:{name}", f"{place[1]}:{name}", place[2]] for name in names]
        for metric, finding in question_analysis.findings_by_metric(place, rows, names).items():
            values = [float(str(row[metric]["value"])) for row in of_models if metric in row]
            finite = tuple(value for value in values if math.isfinite(value)) if len(names) > 1 else ()
            levels = question_analysis.levels(place)
            effects.append(_PooledEffect(*levels, metric, finding, rows[metric], finite))
    return effects
