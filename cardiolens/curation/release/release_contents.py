"""What a release holds, read back from its own files: nothing in it leads to old ids."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import Question, given_questions
from cardiolens.study.manifest import MANIFEST_NAME, Study, read_study

QUESTIONS = "questions.jsonl"
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
    paths = sorted(release.glob(f"studies/*/{MANIFEST_NAME}"))
    studies = {study.study_id: study for study in (read_study(path.parent) for path in paths)}
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
