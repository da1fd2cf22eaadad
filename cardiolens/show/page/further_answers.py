"""Further answers of the first screen over all models: caution, collapse, and the way from tier to tier."""

from cardiolens.score.claims import landscape, question_analysis
from cardiolens.score.claims.evidence_analysis import Rows, places
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.collapse import ENTROPY_DEFICIT
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.pooled_questions import COLLAPSE
from cardiolens.score.statistics.rows import TIERS
from cardiolens.score.statistics.signal_detection import CRITERION
from cardiolens.show.page.elements import Answer
from cardiolens.show.page.page_data import Facts

_VERDICTS = {"supported": "Yes", "not supported": "No", "cannot tell": "Cannot be told"}
_CAUTION = {"supported": "Yes", "not supported": "No, bolder", "cannot tell": "Cannot be told"}


def further_answers(facts: Facts) -> list[Answer]:
    """Those of these questions that the models of a run were asked; simulated readers are no models."""
    return [*_caution(facts), *_collapse(facts), *_decline(facts)]


def _caution(facts: Facts) -> list[Answer]:
    """Whether a prompt moves the criterion for calling an abnormality, on tier 1."""
    return [
        Answer(
            f"caution-{ours}",
            f"Does prompt {ours} make models more cautious?",
            _CAUTION[finding.verdict],
            finding.sentence,
            differences=False,
        )
        for (factor, ours, metric), finding in _pooled_findings(facts).items()
        if (factor, metric) == ("prompt", CRITERION)
    ]


def _collapse(facts: Facts) -> list[Answer]:
    """Whether answers spread over fewer categories than the truth, on tier 1."""
    question = "Do models fall back on few categories?"
    return [
        Answer(COLLAPSE, question, _VERDICTS[finding.verdict], finding.sentence, differences=False)
        for (_, _, metric), finding in _pooled_findings(facts).items()
        if metric == ENTROPY_DEFICIT
    ]


def _decline(facts: Facts) -> list[Answer]:
    """Whether accuracy corrected for guessing changes from image understanding to diagnosis."""
    unreal = {f"{PREFIX}{model}" for model in facts.simulated}
    rows = [row for row in facts.analysis("landscape").rows if row["arm_id"] not in unreal]
    finding = landscape.declines(rows).get((TIERS[0], TIERS[2]))
    if finding is None:
        return []
    than = "Lower on tier 3" if " is lower on " in finding.sentence else "Higher on tier 3"
    verdict = than if finding.verdict == "supported" else _VERDICTS["cannot tell"]
    question = "Do models that read images also reach the diagnosis?"
    return [Answer("tiers", question, verdict, finding.sentence, differences=False)]


def _pooled_findings(facts: Facts) -> dict[tuple[str, str, str], Finding]:
    """Findings over all models on tier 1, by factor, level and metric."""
    by_place = places(facts.analysis(question_analysis.NAME).rows)
    models = question_analysis.models_behind(by_place)
    findings: dict[tuple[str, str, str], Finding] = {}
    for place, names in models.items():
        rows: Rows = by_place[place]
        if place[2] == TIERS[0]:
            factor, ours, _ = question_analysis.levels(place)
            of_metrics = question_analysis.findings_by_metric(place, rows, names)
            findings |= {(factor, ours, metric): finding for metric, finding in of_metrics.items()}
    return findings
