"""Controls: changes of the frames or the question of a request; parts of other packages among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

import numpy as np

from cardiolens.base.digest import digest_of
from cardiolens.base.entry_points import PluginError, blamed, is_word, make
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.readers import open_engine
from cardiolens.protocol.prompts.question import AskedQuestion, with_suggestion
from cardiolens.protocol.prompts.template import Display
from cardiolens.protocol.select.pool_selectors import open_selector
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.study.structure import StudyStructure

SEED = 2026
BLANK = "blank"  # flag of a request whose frames are shown black
SHOWN: Mapping[str, Display] = {"blind": "nothing", "captions": "captions"}  # other controls: frames


class RequestControl(Protocol):
    """Changes a request, to test what the answers depend on. The entry point makes it without arguments."""

    def frames(self, frames: tuple[Frame, ...], structure: StudyStructure) -> Sequence[Frame]:
        """Return the frames to show, in their order: of the same study, and no more than were selected."""
        ...

    def question(self, question: AskedQuestion, seed: int) -> AskedQuestion:
        """Return the question with other words, or its options in another order; `seed` is the question's."""
        ...


@lru_cache
def open_control(word: str) -> RequestControl:
    """Make the control that a word names; InputError or PluginError if it cannot be used."""
    control: RequestControl = make("controls", word, RequestControl)
    return control


def changed_selection(word: str, selection: Selection, structure: StudyStructure) -> Selection:
    """Return a selection as a control of another package shows it; PluginError for frames that are wrong."""
    if selection.skipped is not None:
        return selection
    with blamed(word):
        frames = tuple(Frame(*frame) for frame in open_control(word).frames(selection.frames, structure))
    volumes, most = structure.volumes, len(selection.frames)
    in_study = all(
        frame.volume_id in volumes
        and 0 <= frame.idx < volumes[frame.volume_id].n_frames
        and (frame.slice, frame.phase) == divmod(frame.idx, volumes[frame.volume_id].n_phases)
        for frame in frames
    )
    if not in_study or not min(1, most) <= len(frames) <= most:
        raise PluginError(
            f"plugin {word}: shows {frames}; expected 1 to {most} frames of the study; its maker must "
            "correct it"
        )
    return replace(selection, frames=frames)


def _changed_question(word: str, question: AskedQuestion, qa_id: str) -> AskedQuestion:
    """Return a question as a control of another package asks it; PluginError if it asks something else."""
    with blamed(word):
        changed = open_control(word).question(question, int(digest_of(qa_id)[:8], 16))
        rest = replace(
            changed, question=question.question, checklist=question.checklist, options=question.options
        )
        same = rest == question and sorted(changed.options) == sorted(question.options)
    if not same or (question.answer_type == "ordinal" and changed.options != question.options):
        raise PluginError(
            f"plugin {word}: changes more of a question than its words, its checklist and the order of "
            "options that are not ordinal; its maker must correct it"
        )
    return changed


def check_plugins(spec: SweepSpec) -> None:
    """Make each part that asks or answers; InputError or PluginError if one cannot be used.

    Simulated readers are checked with those of this package, and report metrics where they are opened.
    """
    for selector in spec.selector:
        if selector.plugged:
            open_selector(selector.kind, selector.options)
    for control in filter(is_word, spec.control):
        open_control(control)
    for model in spec.model:
        if model.plugged and not model.simulated:
            open_engine(model).close()


def with_options(
    question: AskedQuestion, control: str, qa_id: str, suggestions: Mapping[str, str] = MappingProxyType({})
) -> AskedQuestion:
    """Order the options of a question, or change its words, as a control demands.

    `suggestions` are the option keys that leading controls suggest, by control.
    """
    if control in suggestions:
        return with_suggestion(question, suggestions[control])
    if is_word(control):
        return _changed_question(control, question, qa_id)
    if control == "shuffled_options":
        return _shuffled(question, qa_id)
    return reversed_options(question) if control == "reversed_options" else question


def _shuffled(question: AskedQuestion, qa_id: str) -> AskedQuestion:
    """Shuffle the options in an order fixed by `qa_id`; ordinal and open questions stay unchanged."""
    if question.answer_type == "ordinal" or question.answer_type in OPEN:
        return question
    order = sorted(question.options, key=lambda option: digest_of([SEED, qa_id, option[0]]))
    return replace(question, options=tuple(order))


def reversed_options(question: AskedQuestion) -> AskedQuestion:
    """Order ordinal options from most to least severe; other questions stay unchanged."""
    if question.answer_type != "ordinal":
        return question
    return replace(question, options=question.options[::-1], reversed=True)


@dataclass(frozen=True, slots=True)
class Subject:
    """The facts of a question that decide which other patient's frames it gets."""

    qa_id: str
    study_id: str
    patient_id: str
    answer: tuple[str, ...]


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
        same_patient, same_answer = (values == np.roll(values, step) for values in (patient, answer))
        return int(same_patient.sum()), int(same_answer.sum())

    step = min(range(1, len(subjects)), key=cost, default=0)
    return {
        subject.qa_id: subjects[at - step].study_id
        for at, subject in enumerate(subjects)
        if subject.patient_id != subjects[at - step].patient_id
    }


def _shape(structure: StudyStructure) -> tuple[tuple[str, int, int], ...]:
    volumes = structure.volumes.values()
    return tuple(sorted((volume.volume_id, volume.n_slices, volume.n_phases) for volume in volumes))


def blank_digest(digest: str) -> str:
    """Return the digest of the black frame that replaces a frame; the black frame has the same size."""
    return digest_of([BLANK, digest])
