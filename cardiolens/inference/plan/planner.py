"""Plan the requests of one model on the studies of one part: every question under every arm."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import Identity, readings_of
from cardiolens.inference.models.token_counts import Rendering, TokenCounter
from cardiolens.inference.plan.chosen_frames import Choosing, largest_frames
from cardiolens.inference.plan.control import BLANK, SHOWN, with_options
from cardiolens.inference.plan.few_shot import Examples, FewShot, flag_of
from cardiolens.inference.plan.frame_views import ArmFrames, FrameSelector, StudyFrames, View
from cardiolens.inference.plan.prompt_parts import FrameBlock, FrameText, ReplyForm, TokenLimit, arm_frames
from cardiolens.inference.plan.request import (
    PlannedQuestion,
    Request,
    RequestColumns,
    hash_frames,
    hash_model,
)
from cardiolens.inference.plan.turns import Direct, Draft, InSteps, Sampled
from cardiolens.protocol.prompts.case_prompts import lacking
from cardiolens.protocol.prompts.frames import FLAG as VIDEO_FLAG
from cardiolens.protocol.prompts.frames import count_videos
from cardiolens.protocol.prompts.question import AskedQuestion, with_points_of_paper
from cardiolens.protocol.prompts.template import Style, Template, template_folders, template_for
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.protocol.tasks.legal import constraint_of
from cardiolens.protocol.tasks.twins import LESION, is_twin
from cardiolens.storage.schemas import PLANNED

ESTIMATED = "estimated_tokens"  # flag of a request whose tokens are estimated, not counted by a processor


class ModelPlanner:
    """Plans the requests of one model study by study, so that memory does not grow with the cohort.

    `frames_of` opens a study: the question's own, or one that lends frames or examples.
    """

    def __init__(
        self,
        spec: SweepSpec,
        model: ModelSpec,
        identity: Identity,
        arms: Sequence[Arm],
        counter: TokenCounter | None,
        *,
        frames_of: Callable[[str], StudyFrames],
    ) -> None:
        self._level = spec.caption
        self._model = model
        self._arms: dict[ArmFrames, list[tuple[Arm, str]]] = {}  # with their ids, by the frames they show
        for arm in arms:
            self._arms.setdefault(arm_frames(arm), []).append((arm, arm.arm_id))
        self._templates = cache(partial(template_folders, spec.templates))
        self._asked = hash_model(identity.model_key, model.sampling)
        self._read = readings_of(model).keys() if model.answers_from == "readings" else None
        lends = any(arm.control == "other_patient" or arm.prompt.shots for arm in arms)
        self._frames = FrameSelector(Rendering(model.long_side), counter, frames_of, lends=lends)
        self._text, self._limit = FrameText(spec.caption), TokenLimit(model, counter)
        self._form = ReplyForm(spec, model)
        self._few_shot = FewShot(self._frames, self._text, self._form, self._templates)

    def add_study(self, columns: RequestColumns, study_id: str, questions: Sequence[PlannedQuestion]) -> None:
        """Append the requests on one study, question by question."""
        for question in questions:
            for shown_by, arms in self._arms.items():
                own_view = self._frames.own_view(study_id, question, shown_by, as_video=False)
                for arm, arm_id in arms:
                    if (arm.control == LESION) == is_twin(study_id):
                        self._add(columns, question, arm, arm_id, own_view)

    def _add(
        self, columns: RequestColumns, question: PlannedQuestion, arm: Arm, arm_id: str, own_view: View
    ) -> None:
        """Append the request of one question under one arm, with its chain and examples if it is sent."""
        own_view = replace(own_view, as_video=arm.prompt.cine == "video")
        view = self._frames.view(question, arm.control, own_view, arm_frames(arm))
        examples = self._few_shot.before(question, arm, arm_id)
        if view.selection.skipped is None and (why := self._why_skipped(question, arm, view, examples)):
            view = view.skipped(why)
        displayed = self._worded(question, arm)
        selection = view.selection
        turns = self._turns(question, arm, arm_id, displayed, view=view, examples=examples)
        status, tokens = f"skipped: {selection.skipped}", None
        if selection.skipped is None:
            status, tokens = self._limit.status(turns.draft.block, turns.ending, turns.reply_tokens)
        chain = turns.chain() if status == PLANNED else None
        n_videos = count_videos(turns.draft.block.text) if view.as_video else 0
        request = Request(
            arm_id=arm_id,
            qa_id=question.qa_id,
            study_id=question.study_id,
            frames_study_id=view.study_id,
            subtask=displayed.subtask,
            frames=() if isinstance(turns, Choosing) else selection.frames,
            system=turns.draft.block.system,
            prompt=turns.prompt,
            template=turns.draft.template.name,
            answer_format=self._form.format_of(displayed, arm.prompt),
            answer_type=displayed.answer_type,
            option_keys=displayed.keys,
            exclusive=displayed.exclusive,
            max_tokens=turns.draft.max_tokens,
            stage=turns.n_before,
            replicate=int(arm.control == "repeat"),
            flags=(
                *selection.flags,
                *([ESTIMATED] if self._model.estimates_tokens else []),
                *([flag_of(examples.shown)] if examples.shown else []),
                *([f"{VIDEO_FLAG}{n_videos}"] if n_videos else []),
            ),
            status=status,
            predicted_tokens=tokens,
            request_key=turns.key(chain),
        )
        columns.add(request, chain, examples.shown if status == PLANNED else ())

    def _why_skipped(self, question: PlannedQuestion, arm: Arm, view: View, examples: Examples) -> str | None:
        """Return why a request is not sent although its frames were selected; None if it is sent."""
        prompt = arm.prompt
        if prompt.shots and not examples.shown and question.asked.answer_type not in OPEN:
            return f"fewer than {prompt.shots} solved examples of other patients"
        if question.case is not None and (why := lacking(question.case, view.frames, prompt.gold)):
            return why
        if self._read is None:
            return None
        changed = arm.control != "none" or arm.wording or prompt.steps != "none" or prompt.shots
        if changed or arm.selector.kind == "self" or prompt.cine == "video":
            return "not read in this form"
        return None if question.qa_id in self._read else "not read"

    def _worded(self, question: PlannedQuestion, arm: Arm) -> AskedQuestion:
        """Return a question in the words, and with its options in the order, that an arm displays."""
        displayed = with_options(
            question.worded(arm.wording), arm.control, question.qa_id, question.suggestions
        )
        return with_points_of_paper(displayed) if arm.prompt.style == "paper" else displayed

    def _turns(
        self,
        question: PlannedQuestion,
        arm: Arm,
        arm_id: str,
        displayed: AskedQuestion,
        *,
        view: View,
        examples: Examples,
    ) -> Direct:
        """Return what is sent after the frames: by the arm one request, or a chain of several."""
        prompt = arm.prompt
        display = SHOWN.get(arm.control, "frames")
        style: Style = "standard" if prompt.style == "standard" else "reasoning"
        template = template_for(displayed, style, self._templates(displayed.protocol), display=display)
        several = prompt.samples > 1 and displayed.answer_type not in OPEN  # a report has no majority
        chooses = arm.selector.kind == "self" and view.selection.skipped is None
        counted, n_frames = view, len(view.frames)
        if chooses:
            largest = replace(view.selection, frames=largest_frames(self._frames, view, arm))
            counted, n_frames = replace(view, selection=largest), len(view.captioned)
        block = self._block(template, counted, question, arm, examples)
        form, options = self._form, (displayed.answer_type, displayed.keys, displayed.exclusive)
        legal = constraint_of(form.format_of(displayed, prompt), *options).text
        replicate = str(int(arm.control == "repeat"))
        owner = (arm_id, question.qa_id) if self._is_own(several=several) else ()
        decoding = (legal, str(form.max_tokens(displayed, prompt)), replicate, *owner)
        draft = Draft(displayed, arm, template, form, block, n_frames, decoding)
        if chooses:
            return Choosing(draft, self._frames, view, self._level, self._asked)
        if prompt.steps != "none":
            return InSteps(draft, len(view.selection.frames))
        return Sampled(draft) if several else Direct(draft)

    def _is_own(self, *, several: bool) -> bool:
        """Return whether an arm shares no completion with other arms; samples have seeds and may share."""
        return self._model.told_questions or not (several or self._model.determined)

    def _block(
        self, template: Template, view: View, question: PlannedQuestion, arm: Arm, examples: Examples
    ) -> FrameBlock:
        """Return the block that shows a view; requests with the same frames and text share it."""
        frames, blank, gold = view.selection.frames, BLANK in view.selection.flags, arm.prompt.gold
        key = template.system, frames, view.as_video, view.captioned, blank, question.case, gold, examples
        block = view.study.shown.get(key)
        if block is None:
            text = examples.text + self._text.of(view, question.case, gold)
            pictures = [*examples.pictures, *self._frames.pictures(view)]
            state = hash_frames(self._asked, template.system, text, tuple(key for key, _ in pictures))
            sizes = tuple(size for _, size in pictures)
            block = self._limit.counted(FrameBlock(template.system, text, state, sizes))
            view.study.shown[key] = block
        assert isinstance(block, FrameBlock)
        return block
