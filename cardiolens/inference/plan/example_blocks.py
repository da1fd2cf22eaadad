"""Show solved examples of other patients before the frames of a question."""

from collections.abc import Callable, Sequence
from pathlib import Path

from cardiolens.config.arms import Arm
from cardiolens.inference.plan.control import SHOWN, FrameSelector, with_options
from cardiolens.inference.plan.frame_blocks import FrameBlocks, ReplyForm
from cardiolens.inference.plan.planned_study import (
    NO_EXAMPLES,
    ExampleBlock,
    Picture,
    PlannedQuestion,
    ShownExample,
    SolvedExample,
    StudyFrames,
    View,
)
from cardiolens.protocol.prompts.question import after_examples, example_block, solution
from cardiolens.protocol.prompts.template import question_block, template_for
from cardiolens.protocol.tasks.catalogue import OPEN

_SOLUTIONS = 4096  # texts of examples kept, one for each arm and subtask if few patients are left out


class ExampleBlocks:
    """Shows examples for the requests of one model."""

    def __init__(
        self,
        frames: FrameSelector,
        blocks: FrameBlocks,
        form: ReplyForm,
        templates: Callable[[str], tuple[Path, ...]],  # by protocol
    ) -> None:
        self._frames = frames
        self._blocks = blocks
        self._form = form
        self._templates = templates
        self._solutions: dict[tuple[str, tuple[str, ...]], ExampleBlock] = {}  # by arm and qa_ids on offer

    def solved(
        self, question: PlannedQuestion, arm: Arm, arm_id: str, frames_of: Callable[[str], StudyFrames]
    ) -> ExampleBlock:
        """Return the examples of an arm for a question; none for a report, or if there are too few."""
        if not arm.prompt.shots or question.asked.answer_type in OPEN:
            return NO_EXAMPLES
        lent = question.examples.get(arm.prompt.shots_seed, ())
        if arm.control == "other_patient":  # whose frames are shown: an example would solve them
            lent = tuple(example for example in lent if example.question.study_id != question.donor)
        key = arm_id, tuple(example.question.qa_id for example in lent)
        if key not in self._solutions:
            if len(self._solutions) >= _SOLUTIONS:
                self._solutions.clear()
            self._solutions[key] = self._shown_solved(lent, arm, frames_of)
        return self._solutions[key]

    def _shown_solved(
        self, lent: Sequence[SolvedExample], arm: Arm, frames_of: Callable[[str], StudyFrames]
    ) -> ExampleBlock:
        """Show the first of the lent questions that have frames, each as the arm shows a question."""
        texts, pictures, examples = list[str](), list[Picture](), list[ShownExample]()
        for example in lent:
            if len(examples) == arm.prompt.shots:
                break
            view = self._example_view(example.question, arm, frames_of)
            if view.selection.skipped is None:
                number = len(examples) + 1
                texts.append(self._example_text(example, arm, view, number))
                pictures += self._frames.pictures(view)
                qa_id, study_id = example.question.qa_id, example.question.study_id
                examples.append(ShownExample(qa_id, study_id, view.selection.frames))
        if len(examples) < arm.prompt.shots:
            return NO_EXAMPLES
        return ExampleBlock(after_examples("".join(texts)), tuple(pictures), tuple(examples))

    def _example_view(
        self, question: PlannedQuestion, arm: Arm, frames_of: Callable[[str], StudyFrames]
    ) -> View:
        """Return what the arm shows of an example; control other_patient shows an example its own frames."""
        study = self._frames.study(frames_of, question.study_id)
        selection = self._frames.select(study, question, arm.selector, arm.seed, arm.budget)
        own_view = View(question.study_id, study, selection, arm.prompt.cine == "video")
        if arm.control == "other_patient":
            return own_view
        return self._frames.view(question, arm, own_view, frames_of)

    def _example_text(self, example: SolvedExample, arm: Arm, view: View, number: int) -> str:
        """Render an example without points to work through: its answer has no reasons."""
        question = example.question
        worded = with_options(question.worded(arm.wording), arm.control, question.qa_id)
        display = SHOWN.get(arm.control, "frames")
        template = template_for(worded, "standard", self._templates(worded.protocol), display=display)
        n_frames = len(view.told or view.selection.frames)
        text = self._blocks.text(view, None, "none") + question_block(
            worded, n_frames, template, self._form.closing
        )
        reply = solution(worded, example.answer, self._form.format_of(worded, arm.prompt))
        return example_block(text, reply, number, arm.prompt.shots)
