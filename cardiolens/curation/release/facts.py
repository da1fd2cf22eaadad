"""Facts of a release, as its index and its card tell them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from cardiolens.curation.release.words import Release
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import GivenQuestion
from cardiolens.study.manifest import Study

SCHEMA = "release-1"
Record = dict[str, Any]


def described(spec: Release, catalogue: Catalogue, canary: str) -> Record:
    """The release in its own words: what it is of, and under which licence."""
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


def counted(
    asked: Sequence[GivenQuestion],
    studies: Mapping[str, Study],
    cohort_of: Mapping[str, str],
    cohorts: Iterable[str],
) -> Record:
    """Patients, studies and questions by cohort; questions by subtask and class, origin and verification."""
    told: dict[str, Record] = {}
    for cohort in cohorts:
        own = {name for name, one in studies.items() if cohort_of[one.manifest.patient_id] == cohort}
        told[cohort] = {
            "patients": len({studies[name].manifest.patient_id for name in own}),
            "studies": len(own),
            "questions": sum(one.question.study_id in own for one in asked),
        }
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    for one in asked:
        classes[one.question.subtask].update(one.question.answer or ["report"])
        classes[one.question.subtask]["questions"] += 1
    return {
        "cohorts": told,
        "subtasks": {name: dict(sorted(own.items())) for name, own in sorted(classes.items())},
        "origins": dict(Counter(one.question.origin for one in asked)),
        "verified": sum(one.question.verified for one in asked),
        "questions": len(asked),
    }
