"""Facts of a release, read back from its own files: nothing in it leads to old ids."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.config.conf_names import SCHEMA
from cardiolens.curation.release.release_words import Release
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import Question, given_questions
from cardiolens.study.manifest import Study, read_studies

Record = dict[str, Any]
QUESTIONS = "questions.jsonl"
ATTRIBUTES = ("sex", "age band", "vendor", "field strength", "site")  # of a study's subgroups
NOT_TOLD = "not told"
_COHORT = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True)
class Contents:
    """The studies of a release by id, and its questions by cohort, in the order of cohorts and file."""

    studies: Mapping[str, Study]
    cohorts: Mapping[str, Sequence[Question]]

    def studies_of(self, cohort: str) -> list[Study]:
        """Return the studies of a cohort, in order."""
        return [study for study in self.studies.values() if cohort in study.manifest.cohort]


def read_contents(release: Path, catalogue: Catalogue) -> Contents:
    """Read the studies and questions of a release.

    InputError if one cannot be used, if a study of a question is not there, or if the name of a cohort, which
    becomes the name of a folder, is none that a release gives.
    """
    studies = read_studies(release / "studies", "studies")
    cohorts: dict[str, list[Question]] = defaultdict(list)
    for name in sorted({name for study in studies.values() for name in study.manifest.cohort}):
        if not _COHORT.fullmatch(name):
            raise InputError(f"{release}: cohort {name!r} is no name of small letters, digits and hyphens")
        cohorts[name] = []
    for row in given_questions(release / QUESTIONS, catalogue):
        if row.question.study_id not in studies:
            raise InputError(
                f"{release}: {QUESTIONS} line {row.number}: its study {row.question.study_id} is not there"
            )
        for name in studies[row.question.study_id].manifest.cohort:
            cohorts[name].append(row.question)
    return Contents(studies, dict(cohorts))


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


def counted(contents: Contents) -> Record:
    """Count questions and studies by all that the card says of them."""
    questions = [question for asked in contents.cohorts.values() for question in asked]
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        kept = ["withheld"] if question.withheld else question.answer or ["report"]
        answers[question.subtask].update([*kept, "questions"])
    return {
        "cohorts": {
            name: _sizes(contents.studies_of(name), asked) for name, asked in contents.cohorts.items()
        },
        "subtasks": {name: dict(sorted(counts.items())) for name, counts in sorted(answers.items())},
        "origins": dict(Counter(question.origin for question in questions)),
        "verified": sum(question.verified for question in questions),
        "questions": len(questions),
        "subgroups": {name: _subgroups(contents.studies_of(name)) for name in contents.cohorts},
        "asked": {
            name: dict(sorted(Counter(question.subtask for question in asked).items()))
            for name, asked in contents.cohorts.items()
        },
        "agreement": _agreement(questions),
        "small_batches": sum(one.verification.get("batch_decision") == "small" for one in questions),
        "probes": _probed(questions),
        "gates": _gates(questions),
    }


def _sizes(studies: Sequence[Study], asked: Sequence[Question]) -> Record:
    patients = {study.manifest.patient_id for study in studies}
    return {"patients": len(patients), "studies": len(studies), "questions": len(asked)}


def _subgroups(studies: Sequence[Study]) -> Record:
    """Count studies by value of each attribute that any of them has."""
    groups_of = [study.manifest.subgroups for study in studies]
    counts = {name: Counter(groups.get(name, NOT_TOLD) for groups in groups_of) for name in ATTRIBUTES}
    return {
        name: dict(sorted(values.items())) for name, values in counts.items() if set(values) != {NOT_TOLD}
    }


def _agreement(questions: Iterable[Question]) -> list[Record]:
    """Count questions by the kappa of the batch that they were verified in; None where nobody measured it."""
    counts = Counter(question.verification.get("kappa") for question in questions)
    ordered = sorted(counts, key=lambda kappa: (kappa is None, kappa))
    return [{"kappa": kappa, "questions": counts[kappa]} for kappa in ordered]


def _gates(questions: Iterable[Question]) -> list[Record]:
    """Return the blind tests of the models that drafted questions alone, each with how many it drafted."""
    names = ("model", "reports", "drafts", "wrong")
    gates = (question.verification.get("gate") for question in questions)
    counts = Counter(tuple((name, gate[name]) for name in names) for gate in gates if isinstance(gate, dict))
    return [{**dict(gate), "questions": count} for gate, count in sorted(counts.items(), key=str)]


def _probed(questions: Iterable[Question]) -> Record:
    """Return how many questions blind probes asked, of how many models, and the excess of each subtask."""
    excess: dict[str, float] = {}
    models: list[int] = []
    for question in questions:
        n_models, value = (question.verification.get(name) for name in ("probes", "blind_excess"))
        if isinstance(n_models, int) and isinstance(value, int | float):
            models.append(n_models)
            excess[question.subtask] = max(float(value), excess.get(question.subtask, -1.0))
    return {
        "questions": len(models),
        "models": min(models, default=0),
        "excess": dict(sorted(excess.items())),
    }
