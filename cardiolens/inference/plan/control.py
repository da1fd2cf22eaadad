"""Controls: changes of a request that show what its answer rests on (protocol 8.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardiolens.base.digest import digest_of
from cardiolens.config.sweep import Control
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import Display
from cardiolens.study.structure import StudyStructure

SEED = 2026
BLANK = "blank"  # flag of a request whose frames are shown black
SHOWN: Mapping[Control, Display] = {"blind": "nothing", "captions": "captions"}  # every other one: frames


@dataclass(frozen=True, slots=True)
class Subject:
    """A question as far as the choice of another patient's frames depends on it."""

    qa_id: str
    study_id: str
    patient_id: str
    answer: tuple[str, ...]


def shuffled(question: AskedQuestion, qa_id: str) -> AskedQuestion:
    """The question with its options in a shuffled order of its own; ordinal options and reports stay."""
    if question.answer_type in ("ordinal", "report"):
        return question
    order = sorted(question.options, key=lambda option: digest_of([SEED, qa_id, option[0]]))
    return replace(question, options=tuple(order))


def reversed_options(question: AskedQuestion) -> AskedQuestion:
    """The question with ordinal options from most to least severe; any other as it is (protocol 16.8)."""
    if question.answer_type != "ordinal":
        return question
    return replace(question, options=question.options[::-1], reversed=True)


def with_options(question: AskedQuestion, control: Control, qa_id: str) -> AskedQuestion:
    """The question with its options in the order that a control gives them."""
    if control == "shuffled_options":
        return shuffled(question, qa_id)
    return reversed_options(question) if control == "reversed_options" else question


def donors(subjects: Sequence[Subject], structures: dict[str, StudyStructure]) -> dict[str, str]:
    """Studies whose frames stand in for others, by qa_id, for one subtask's questions: a fixed derangement.

    Never the same patient's, always of a study with the same volumes, slices and phases, and with another
    answer where that can be had. A question for which there is no such study is left out.
    """
    alike: dict[object, list[Subject]] = {}
    for subject in sorted(subjects, key=lambda subject: digest_of([SEED, subject.qa_id])):
        alike.setdefault(_shape(structures[subject.study_id]), []).append(subject)
    donor_of: dict[str, str] = {}
    for group in alike.values():
        donor_of |= _deranged(sorted(group, key=lambda subject: subject.answer))
    return donor_of


def _deranged(subjects: Sequence[Subject]) -> dict[str, str]:
    """The rotation with the fewest donors that are the same patient, then with the fewest of one answer."""
    patient = np.unique([subject.patient_id for subject in subjects], return_inverse=True)[1]
    answer = np.unique(["".join(subject.answer) for subject in subjects], return_inverse=True)[1]

    def cost(step: int) -> tuple[int, int]:
        return (
            int((patient == np.roll(patient, step)).sum()),
            int((answer == np.roll(answer, step)).sum()),
        )

    steps = range(1, len(subjects))
    if not steps:
        return {}
    step = min(steps, key=cost)
    donor = [subjects[at - step] for at in range(len(subjects))]
    return {
        subject.qa_id: other.study_id
        for subject, other in zip(subjects, donor, strict=True)
        if subject.patient_id != other.patient_id
    }


def _shape(structure: StudyStructure) -> tuple[tuple[str, int, int], ...]:
    volumes = structure.volumes.values()
    return tuple(sorted((volume.volume_id, volume.n_slices, volume.n_phases) for volume in volumes))


def blank_digest(digest: str) -> str:
    """The digest of a black frame that stands for another: a picture of its own, of the same size."""
    return digest_of([BLANK, digest])
