"""The declared question over all models, listed first: a difference or an equivalence (16.12, 17.10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.evidence_analysis import Place, Rows, places
from cardiolens.score.claims.preregistered import NAME, Declaration
from cardiolens.score.claims.question_analysis import cause_words, models_behind, place_words, side_words
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.pooled_questions import DOUBLING, PREFIX
from cardiolens.score.statistics.rows import Row


@dataclass(frozen=True, slots=True)
class DeclaredQuestion:
    """What a level of a factor does over all models on a tier; of budgets no level is named."""

    factor: str
    level: str | None
    tier: int
    claim: Literal["difference", "equivalence"]
    declaration: Declaration


def declared_question(scores: Sequence[Row], question: DeclaredQuestion) -> Analysis:
    """Test the declared question alone if no answer was there before it, else as one of its family."""
    rows_by_place = places([row for row in scores if str(row["arm_id"]).startswith(PREFIX)])
    models = models_behind(rows_by_place)
    place = next((place for place in models if _is_asked(place, question)), None)
    if place is None:
        sentence = (
            f"What {question.factor} does on tier {question.tier} was declared as the question, and the "
            "models of this run share no setting that could answer it: nothing can be said."
        )
        return Analysis(NAME, [], (Finding(None, sentence),))
    rows = rows_by_place[place]
    finding = _finding(place, rows, models[place], question)
    return Analysis(NAME, list(rows.values()), (finding,))


def _finding(place: Place, rows: Rows, models: Sequence[str], question: DeclaredQuestion) -> Finding:
    where, evidence_of = place_words(place, models), question.declaration.evidence
    if question.claim == "difference":
        evidence = evidence_of(rows, "primary")
        return sentences.change(cause_words(place), f"the score on {where}", rows["primary"], evidence)
    ours, theirs = side_words(place) or ("no control", f"control {question.level}")
    return sentences.equivalence(
        ours, theirs, where, rows["primary.equivalence"], rows, evidence_of=evidence_of
    )


def _is_asked(place: Place, question: DeclaredQuestion) -> bool:
    ours, theirs, scope = place
    factor, _, level = ours.removeprefix(PREFIX).partition("=")
    if question.factor == "control":
        level = theirs.partition("=")[2]
    if (factor, scope) != (question.factor, f"tier:{question.tier}") or level == DOUBLING:
        return False
    return question.factor == "budget" or level == question.level
