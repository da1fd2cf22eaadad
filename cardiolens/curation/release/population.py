"""Facts of whom and what a release shows: subgroups, questions by cohort, agreement, volumes held twice."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from cardiolens.curation.release.release_contents import Contents
from cardiolens.protocol.tasks.questions import Question
from cardiolens.study.manifest import Study

ATTRIBUTES = ("sex", "age band", "vendor", "field strength", "site")  # of a study's subgroups
NOT_TOLD = "not told"
Record = dict[str, Any]


def population(contents: Contents) -> Record:
    """Return the facts: counts of studies by subgroup, of questions by subtask and cohort, and others."""
    questions = [question for questions_of in contents.cohorts.values() for question in questions_of]
    return {
        "subgroups": {name: _subgroups(contents.studies_of(name)) for name in contents.cohorts},
        "asked": {
            name: dict(sorted(Counter(question.subtask for question in questions_of).items()))
            for name, questions_of in contents.cohorts.items()
        },
        "agreement": _agreement(questions),
        "small_batches": sum(
            question.verification.get("batch_decision") == "small" for question in questions
        ),
        "readers": {str(count): n for count, n in sorted(Counter(map(_readers, questions)).items())},
        "duplicates": _duplicates(contents),
    }


def _subgroups(studies: Sequence[Study]) -> Record:
    """Count studies by value of each attribute that any of them has."""
    groups_of = [study.manifest.subgroups for study in studies]
    counts = {name: Counter(groups.get(name, NOT_TOLD) for groups in groups_of) for name in ATTRIBUTES}
    return {
        name: dict(sorted(values.items())) for name, values in counts.items() if set(values) != {NOT_TOLD}
    }


def _agreement(questions: Iterable[Question]) -> list[Record]:
    """Count questions by the kappa of the batch that they were verified in; None where nobody measured it."""
    counts = Counter(_kappa(question) for question in questions)
    ordered = sorted(counts, key=lambda kappa: (kappa is None, kappa))
    return [{"kappa": kappa, "questions": counts[kappa]} for kappa in ordered]


def _kappa(question: Question) -> float | None:
    value = question.verification.get("kappa")
    return round(float(value), 4) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _readers(question: Question) -> int:
    """Return how many people verified an answer; 0 where that is not told."""
    value = question.verification.get("readers")
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _duplicates(contents: Contents) -> Record:
    """Count the volumes whose file is, byte for byte, also a volume of another study."""
    holders: dict[str, set[str]] = defaultdict(set)
    for study in contents.studies.values():
        for volume in study.manifest.volumes:
            if volume.sha256 is not None:
                holders[volume.sha256].add(study.study_id)
    shared = [
        [contents.studies[name].manifest for name in names] for names in holders.values() if len(names) > 1
    ]
    return {
        "volumes": len(shared),
        "across_patients": sum(len({study.patient_id for study in studies}) > 1 for studies in shared),
        "across_cohorts": sum(len({study.cohort for study in studies}) > 1 for studies in shared),
    }
