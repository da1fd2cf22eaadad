"""Controls: changes of a request that show what the answer depends on (protocol 8.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from cardiolens.base.digest import digest_of
from cardiolens.base.entry_points import is_word
from cardiolens.inference.plan.control_plugin import changed_question
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.suggestion import with_suggestion
from cardiolens.protocol.prompts.template import Display
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.study.structure import StudyStructure

SEED = 2026
BLANK = "blank"  # flag of a request whose frames are shown black
SHOWN: Mapping[str, Display] = {"blind": "nothing", "captions": "captions"}  # other controls: frames


@dataclass(frozen=True, slots=True)
class Subject:
    """The facts of a question that decide which other patient's frames it gets."""

    qa_id: str
    study_id: str
    patient_id: str
    answer: tuple[str, ...]


def shuffled(question: AskedQuestion, qa_id: str) -> AskedQuestion:
    """Shuffle the options in an order fixed by `qa_id`; ordinal questions and reports stay unchanged."""
    if question.answer_type == "ordinal" or question.answer_type in OPEN:
        return question
    order = sorted(question.options, key=lambda option: digest_of([SEED, qa_id, option[0]]))
    return replace(question, options=tuple(order))


def reversed_options(question: AskedQuestion) -> AskedQuestion:
    """Order ordinal options from most to least severe; other questions stay unchanged (protocol 16.8)."""
    if question.answer_type != "ordinal":
        return question
    return replace(question, options=question.options[::-1], reversed=True)


def with_options(
    question: AskedQuestion, control: str, qa_id: str, suggestions: Mapping[str, str] = MappingProxyType({})
) -> AskedQuestion:
    """Order the options of a question, or change its words, as a control demands.

    `suggestions` are the option keys that leading controls suggest, by control.
    """
    if control in suggestions:
        return with_suggestion(question, suggestions[control])
    if is_word(control):
        return changed_question(control, question, qa_id)
    if control == "shuffled_options":
        return shuffled(question, qa_id)
    return reversed_options(question) if control == "reversed_options" else question


def donors(subjects: Sequence[Subject], structures: dict[str, StudyStructure]) -> dict[str, str]:
    """Map each qa_id of one subtask to the study whose frames replace its own: a fixed derangement.

    The donor study is never of the same patient, always has the same volumes, slices and phases, and has
    another answer if possible. A question without such a study is left out.
    """
    alike: dict[object, list[Subject]] = {}
    for subject in sorted(subjects, key=lambda subject: digest_of([SEED, subject.qa_id])):
        alike.setdefault(_shape(structures[subject.study_id]), []).append(subject)
    donor_of: dict[str, str] = {}
    for group in alike.values():
        donor_of |= _deranged(sorted(group, key=lambda subject: subject.answer))
    return donor_of


def _deranged(subjects: Sequence[Subject]) -> dict[str, str]:
    """Rotate the subjects by the step with the fewest donors of the same patient, then of equal answer."""
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
    """Return the digest of the black frame that replaces a frame; the black frame has the same size."""
    return digest_of([BLANK, digest])
