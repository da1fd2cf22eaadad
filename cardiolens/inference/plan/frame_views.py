"""The frames that requests of one model show, and what controls change of frames and questions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from cardiolens.base.digest import digest_of
from cardiolens.config.model import ModelSpec
from cardiolens.config.plugins import PluginError, blamed, is_word, make
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm
from cardiolens.inference.engine.readers import open_engine
from cardiolens.inference.models.chat import TokenCounter
from cardiolens.inference.models.token_counts import Rendering, fault_of, frame_key
from cardiolens.inference.plan.request import PlannedQuestion
from cardiolens.protocol.prompts.case_prompts import CaseText, Gold, case_block
from cardiolens.protocol.prompts.frames import CaptionLevel, frame_block
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import Display
from cardiolens.protocol.select.choose import choose, fitting
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.pool_selectors import open_selector
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.study.shards import FrameDigest
from cardiolens.study.structure import StudyStructure

SEED = 2026
BLANK = "blank"  # flag of a request whose frames are shown black
SHOWN: Mapping[str, Display] = {"blind": "nothing", "captions": "captions"}  # other controls: frames


_Shared = TypeVar("_Shared")


class RequestControl(Protocol):
    """Changes a request, to test what the answers depend on. The entry point makes it without arguments."""

    def frames(self, frames: tuple[Frame, ...], structure: StudyStructure) -> Sequence[Frame]:
        """Return the frames to show, in their order: of the same study, and no more than were selected."""

    def question(self, question: AskedQuestion, seed: int) -> AskedQuestion:
        """Return the question with other words, or its options in another order; `seed` is the question's."""


@lru_cache
def open_control(word: str) -> RequestControl:
    """Make the control that a word names; InputError or PluginError if it cannot be used."""
    control: RequestControl = make("controls", word, RequestControl)
    return control


def _changed_selection(word: str, selection: Selection, structure: StudyStructure) -> Selection:
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


def as_displayed(question: PlannedQuestion, arm: Arm) -> AskedQuestion:
    """Return a question in the wording of an arm, with options ordered as its control demands.

    Options are shuffled in an order fixed by the question's id; ordinal and open questions stay unchanged.
    """
    displayed, control = question.asked, arm.control
    if arm.wording:
        displayed = replace(displayed, question=question.subtask.wordings[arm.wording - 1])
    if is_word(control):
        return _changed_question(control, displayed, question.qa_id)
    if control == "reversed_options":
        return reversed_options(displayed)
    if control != "shuffled_options" or displayed.answer_type in ("ordinal", *OPEN):
        return displayed
    order = sorted(displayed.options, key=lambda option: digest_of([SEED, question.qa_id, option[0]]))
    return replace(displayed, options=tuple(order))


def reversed_options(question: AskedQuestion) -> AskedQuestion:
    """Order ordinal options from most to least severe; other questions stay unchanged."""
    if question.answer_type != "ordinal":
        return question
    return replace(question, options=question.options[::-1], reversed=True)


def donors(
    questions: Iterable[Mapping[str, Any]], structures: Mapping[str, StudyStructure]
) -> dict[str, str]:
    """Map each qa_id to the study that lends its frames: a fixed derangement within each subtask.

    `questions` are rows of that table. The donor study is never of the same patient, always has the same
    volumes, slices and phases, and has another answer if possible. A question without such a study is left
    out.
    """
    alike: dict[object, list[Mapping[str, Any]]] = {}
    for row in sorted(questions, key=lambda row: digest_of([SEED, row["qa_id"]])):
        volumes = structures[row["study_id"]].volumes.values()
        shape = sorted((volume.volume_id, volume.n_slices, volume.n_phases) for volume in volumes)
        alike.setdefault((row["subtask"], *shape), []).append(row)
    donor_of: dict[str, str] = {}
    for group in alike.values():
        donor_of |= _deranged(sorted(group, key=lambda row: row["answer"] or []))
    return donor_of


def _deranged(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Rotate the questions by the step with the fewest donors of the same patient, then of equal answer."""
    patient = np.unique([row["patient_id"] for row in rows], return_inverse=True)[1]
    answer = np.unique(["".join(row["answer"] or ()) for row in rows], return_inverse=True)[1]

    def cost(step: int) -> tuple[int, int]:
        same_patient, same_answer = (values == np.roll(values, step) for values in (patient, answer))
        return int(same_patient.sum()), int(same_answer.sum())

    step = min(range(1, len(rows)), key=cost, default=0)
    return {
        row["qa_id"]: rows[at - step]["study_id"]
        for at, row in enumerate(rows)
        if row["patient_id"] != rows[at - step]["patient_id"]
    }


def blank_digest(digest: str) -> str:
    """Return the digest of the black frame that replaces a frame; the black frame has the same size."""
    return digest_of([BLANK, digest])


Picture = tuple[str, tuple[int, int]]
"""Frame key; height and width as rendered."""

_OPEN = 2  # studies kept open, of some megabytes each
_LENDERS = 256  # studies kept open that show for many others: control other_patient, examples


@dataclass(frozen=True, slots=True)
class StudyFrames:
    """The frames of a study: structure, digests, and features if a selector needs them."""

    structure: StudyStructure
    digests: Mapping[tuple[str, int], FrameDigest]  # by volume_id, idx
    features: StudyFeatures | None = None
    shared: dict[object, object] = field(default_factory=dict)  # by requests with equal frames

    def share(self, key: object, make: Callable[[], _Shared]) -> _Shared:
        """Return what requests share under a key; the first makes it."""
        if key not in self.shared:
            self.shared[key] = make()
        return cast(_Shared, self.shared[key])


@dataclass(frozen=True, slots=True)
class View:
    """The frames that one request shows, and their study."""

    study_id: str | None  # None for a request that shows no frames
    study: StudyFrames
    selection: Selection
    as_video: bool = False  # whether phases of a slice are shown as a video
    captioned: tuple[Frame, ...] = ()  # frames shown by their captions alone

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that the prompt shows or describes."""
        return self.captioned or self.selection.frames

    def skipped(self, why: str) -> "View":
        """Return the view of a request that is not sent."""
        return replace(self, selection=Selection((), self.selection.flags, why))

    def text(self, level: CaptionLevel, case: CaseText | None = None, gold: Gold = "none") -> str:
        """Render the frames, with placeholders, or a case with its images."""
        marked = not self.captioned
        if case is not None:
            return case_block(case, self.frames, gold, level, pictures=marked)
        as_video = self.as_video and marked
        return frame_block(self.frames, self.study.structure, level, marked=marked, as_video=as_video)


class FrameSelector:
    """Selects frames for the requests of one model; `lends` if studies show for many others."""

    def __init__(
        self,
        model: ModelSpec,
        counter: TokenCounter | None,  # None if nothing counts tokens, as for a simulated reader
        open_study: Callable[[str], StudyFrames],
        *,
        lends: bool,
    ) -> None:
        self._model, self._counter, self._rendering = model.name, counter, Rendering(model.long_side)
        self._digest = self._rendering.digest
        self._study = lru_cache(maxsize=_LENDERS if lends else _OPEN)(open_study)
        self._last: tuple[object, View] | None = None  # what was selected last, and by what

    def view(self, question: PlannedQuestion, arm: Arm) -> View:
        """Return the frames that an arm shows under its control; by default those of the question's study."""
        by = question.study_id, question.qa_id, arm.selector, arm.seed, arm.budget
        if self._last is None or self._last[0] != by:  # arms that select alike follow one another
            self._last = by, self._selected(question.study_id, question, arm)
        view, control = replace(self._last[1], as_video=arm.prompt.cine == "video"), arm.control
        selection = view.selection
        if is_word(control):
            return replace(view, selection=_changed_selection(control, selection, view.study.structure))
        if control in SHOWN:
            captioned = selection.frames if control == "captions" else ()
            nothing = replace(selection, frames=(), flags=())
            return replace(view, study_id=None, selection=nothing, captioned=captioned)
        if control == "blank":
            return replace(view, selection=replace(selection, flags=(*selection.flags, BLANK)))
        if control != "other_patient":
            return view
        if question.donor is None:
            return view.skipped(selection.skipped or "no other patient with the same views")
        return replace(self._selected(question.donor, question, arm), as_video=view.as_video)

    def _selected(self, study_id: str, question: PlannedQuestion, arm: Arm) -> View:
        """Return what an arm shows of a study for a question, without controls: by number or by tokens."""
        study, budget, words = self._study(study_id), arm.budget, question.asked.question
        chosen_by = arm.selector, arm.seed, study.structure, question.subtask
        at = partial(choose, *chosen_by, features=study.features, question=words)

        def tokens_of(frame: Frame) -> int:
            assert self._counter is not None, "a token budget is refused for a reader without tokens"
            with fault_of(self._model):
                return self._counter.image_tokens(self.size(study, frame))

        if isinstance(budget, int):
            return View(study_id, study, at(budget))
        return View(study_id, study, fitting(at, tokens_of, budget.tokens, available=len(study.digests)))

    def pictures(self, view: View) -> list[Picture]:
        """Return the frames of a view in the order shown; black ones under control blank."""
        blank = BLANK in view.selection.flags
        return [
            (self.key(view.study, frame, blank=blank), self.size(view.study, frame))
            for frame in view.selection.frames
        ]

    def size(self, study: StudyFrames, frame: Frame) -> tuple[int, int]:
        """Return height and width of a frame as rendered."""
        _, height, width = study.digests[frame.volume_id, frame.idx]
        return self._rendering.size(height, width)

    def key(self, study: StudyFrames, frame: Frame, *, blank: bool = False) -> str:
        """Return the key of a frame, or of the black one in its place."""
        digest = study.digests[frame.volume_id, frame.idx].digest
        return frame_key(blank_digest(digest) if blank else digest, self._digest)
