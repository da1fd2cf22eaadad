"""Facts of a release, for its index and its card."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from cardiolens.config.released import SCHEMA
from cardiolens.curation.release.release_words import Release
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import GivenQuestion, Question
from cardiolens.study.manifest import Study

Record = dict[str, Any]


def described(spec: Release, catalogue: Catalogue, canary: str) -> Record:
    """Return the facts that the user declares: name, number, licence, protocol."""
    return {
        "schema": SCHEMA,
        "name": spec.name,
        "number": spec.number,
        "licence": spec.licence,
        "canary": f"cardiolens canary {canary}",
        "protocol": catalogue.protocol,
        "catalogue_sha256": catalogue.sha256,
        "made_by": f"cardiolens {version('cardiolens')}",
        "unverified_allowed": spec.allow_unverified,
    }


def _class_of(question: Question) -> Sequence[str]:
    """Return what a question counts as, among those of its subtask; a withheld answer counts in no class."""
    return ["withheld"] if question.withheld else question.answer or ["report"]


def counted(
    rows: Sequence[GivenQuestion],
    studies: Mapping[str, Study],
    cohort_of: Mapping[str, str],
    cohorts: Iterable[str],
) -> Record:
    """Count patients, studies and questions by cohort, and questions by subtask, class and origin."""
    facts: dict[str, Record] = {}
    for cohort in cohorts:
        study_ids = {
            name for name, study in studies.items() if cohort_of[study.manifest.patient_id] == cohort
        }
        facts[cohort] = {
            "patients": len({studies[name].manifest.patient_id for name in study_ids}),
            "studies": len(study_ids),
            "questions": sum(question.question.study_id in study_ids for question in rows),
        }
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    for question in rows:
        classes[question.question.subtask].update(_class_of(question.question))
        classes[question.question.subtask]["questions"] += 1
    return {
        "cohorts": facts,
        "subtasks": {name: dict(sorted(counts.items())) for name, counts in sorted(classes.items())},
        "origins": dict(Counter(question.question.origin for question in rows)),
        "verified": sum(question.question.verified for question in rows),
        "questions": len(rows),
    }


def probed(rows: Sequence[GivenQuestion]) -> Record:
    """Return how many questions blind probes asked, of how many models, and the excess of each subtask."""
    excess: dict[str, float] = {}
    models: list[int] = []
    for row in rows:
        n_models, value = (row.question.verification.get(name) for name in ("probes", "blind_excess"))
        if isinstance(n_models, int) and isinstance(value, int | float):
            models.append(n_models)
            excess[row.question.subtask] = max(float(value), excess.get(row.question.subtask, -1.0))
    return {
        "questions": len(models),
        "models": min(models, default=0),
        "excess": dict(sorted(excess.items())),
    }
