"""The questions of a sweep as sentences: selection, budget, prompt and controls over all models (17.6)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.evidence_analysis import Evidence, Place, Rows, interval_of, places
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.collapse import ENTROPY_DEFICIT
from cardiolens.score.statistics.pooled_questions import PREFIX
from cardiolens.score.statistics.pooled_rows import DEVIATION, MODELS_ABOVE, NEXT_MODEL
from cardiolens.score.statistics.rows import OWN_UNIT, Row
from cardiolens.score.statistics.signal_detection import CRITERION, D_PRIME, SEVERITY_SHIFT

NAME = "questions"
SUBJECTS: Mapping[str, str] = {
    "primary": "the score",
    CRITERION: "the criterion for calling an abnormality (higher: more conservative)",
    D_PRIME: "how well normal and abnormal are told apart (d′)",
    SEVERITY_SHIFT: "the severity of grades (in grades)",
    "mean_cardinality": "the number of options picked",
    "precision": "precision",
    "recall": "recall",
}
CONTROL_CAUSES: Mapping[str, str] = {  # the cause in words: no control instead of each control
    "blind": "Seeing the frames instead of none",
    "captions": "Seeing the frames with their captions instead of the captions alone",
    "blank": "Seeing the frames instead of black ones",
    "other_patient": "Seeing the patient's own frames instead of another's",
    "shuffled_options": "Reading the options in their own order instead of a shuffled one",
    "reversed_options": "Reading the options in their own order instead of the reverse",
    "leading": "Being asked plainly instead of with a wrong suggestion",
    "leading_right": "Being asked plainly instead of with the right suggestion",
    "lesion": "Reading hearts with their lesions instead of without",
    "repeat": "Being asked the first time instead of again",
}
_CAUSES: Mapping[str, str] = {
    "selector": "Selection {ours} instead of {theirs}",
    "budget": "K = {ours} frames instead of {theirs}",
    "prompt": "Prompt {ours} instead of {theirs}",
}
_EQUIVALENCES: Mapping[str, tuple[str, str]] = {  # both sides in words, where they may be equivalent
    "selector": ("{ours}", "{theirs} selection"),
    "budget": ("K = {ours}", "K = {theirs}"),
    "prompt": ("{ours}", "{theirs} prompt"),
}


def questions(scores: Sequence[Row]) -> Analysis:
    """Answer each question pooled over models, on each tier; then name the models that it holds for alone."""
    rows = [row for row in scores if str(row["arm_id"]).startswith(PREFIX)]
    rows_by_place = places(rows)
    models = models_behind(rows_by_place)
    pooled = [place for place in rows_by_place if place in models]
    findings = [
        finding for place in pooled for finding in _of_question(place, rows_by_place[place], models[place])
    ]
    findings += [finding for place in pooled for finding in _of_models(place, models[place], rows_by_place)]
    return Analysis(NAME, rows, tuple(findings))


def models_behind(rows_by_place: Mapping[Place, Rows]) -> dict[Place, list[str]]:
    """The models behind each question; the slope per doubling has none and is only described."""
    models: dict[Place, list[str]] = {}
    for ours, theirs, scope in rows_by_place:
        _, _, model = ours.removeprefix(PREFIX).partition(":")
        if model:
            side = ours.removesuffix(f":{model}"), theirs.removesuffix(f":{model}"), scope
            models.setdefault(side, []).append(model)
    return models


def findings_by_metric(place: Place, rows: Rows, models: Sequence[str]) -> dict[str, Finding]:
    """What a question says over its models, by metric."""
    where = place_words(place, models)
    findings = {ENTROPY_DEFICIT: _collapse(place, rows, models)} if ENTROPY_DEFICIT in rows else {}
    for metric, subject in SUBJECTS.items():
        if metric in rows:
            evidence = Evidence.of(rows, metric)
            finding = sentences.change(cause_words(place), f"{subject} on {where}", rows[metric], evidence)
            sentence = finding.sentence + _spread(rows, metric, len(models))
            findings[metric] = replace(finding, sentence=sentence)
    return findings


def _of_question(place: Place, rows: Rows, models: Sequence[str]) -> Iterator[Finding]:
    where = place_words(place, models)
    yield from findings_by_metric(place, rows, models).values()
    if sides := side_words(place):
        first, second = sides
        yield sentences.equivalence(first, second, where, rows["primary.equivalence"], rows)


def _collapse(place: Place, rows: Rows, models: Sequence[str]) -> Finding:
    """Whether answers spread over fewer categories than the truth (17.13)."""
    claim = "answers spread over fewer categories than the truth on " + place_words(place, models)
    claim += ", in points of entropy"
    evidence = Evidence.of(rows, ENTROPY_DEFICIT)
    finding = sentences.threshold(claim, rows[ENTROPY_DEFICIT], 0.0, evidence, beyond=True)
    sentence = finding.sentence[0].upper() + finding.sentence[1:]
    return replace(finding, sentence=sentence + _spread(rows, ENTROPY_DEFICIT, len(models)))


def place_words(place: Place, models: Sequence[str]) -> str:
    """The tier, and over how many models, in words."""
    over = f"of {models[0]}" if len(models) == 1 else f"over {len(models)} models"
    return f"{place[2].replace(':', ' ')} {over}"


def side_words(place: Place) -> tuple[str, str] | None:
    """Both sides in words where they may be equivalent; None of controls."""
    factor, ours, theirs = levels(place)
    if factor not in _EQUIVALENCES:
        return None
    first, second = (side.format(ours=ours, theirs=theirs) for side in _EQUIVALENCES[factor])
    return first, second


def cause_words(place: Place) -> str:
    """What is done in place of what, in words."""
    factor, ours, theirs = levels(place)
    if factor == "control":
        return control_cause(theirs)
    return _CAUSES[factor].format(ours=ours, theirs=theirs)


def control_cause(control: str) -> str:
    """What is done in place of a control, in words; those of other packages have none of their own."""
    return CONTROL_CAUSES.get(control, f"Being asked as it is instead of under control {control}")


def levels(place: Place) -> tuple[str, str, str]:
    """The factor of a question, and its two levels."""
    factor, _, ours = place[0].removeprefix(PREFIX).partition("=")
    return factor, ours, place[1].partition("=")[2]


def _spread(rows: Rows, metric: str, models: int) -> str:
    """How far the models agree, as a sentence of its own."""
    if models == 1:
        return ""
    above = int(float(str(rows[f"{metric}.{MODELS_ABOVE}"]["value"])))
    words = f" It goes up in {above} of {models} models"
    if f"{metric}.{DEVIATION}" in rows:
        deviation, expected = (interval_of(rows[f"{metric}.{name}"]) for name in (DEVIATION, NEXT_MODEL))
        places = 2 if metric in OWN_UNIT else 1
        sd, low, high, least, most = (
            sentences.signed(value, places)
            for value in (deviation.value, deviation.low, deviation.high, expected.low, expected.high)
        )
        words += f"; between models it has an SD of {sd} (95 % CI {low} to {high})"
        words += f", and a next model is expected between {least} and {most}"
    return f"{words}."


def _of_models(place: Place, models: Sequence[str], rows_by_place: Mapping[Place, Rows]) -> Iterator[Finding]:
    """The models whose own difference is carried, where the question's test opened their family."""
    if len(models) == 1:
        return
    for model in models:
        rows = rows_by_place[f"{place[0]}:{model}", f"{place[1]}:{model}", place[2]]
        for metric, subject in SUBJECTS.items():
            evidence = Evidence.of(rows, metric)
            if metric in rows and evidence.carried:
                of_model = f"{subject} on {place[2].replace(':', ' ')} of {model}"
                yield sentences.change(cause_words(place), of_model, rows[metric], evidence)
