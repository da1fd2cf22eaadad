"""Plan the requests of one model on one study: every question under every arm."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

from cardiolens.base.digest import digest_of
from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Budget, SelectorSpec
from cardiolens.inference.models.human_reader import readings_of
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.models.token_counts import Rendering, TokenCounter
from cardiolens.inference.plan.control import SHOWN, FrameSelector, with_options
from cardiolens.inference.plan.example_blocks import ExampleBlocks
from cardiolens.inference.plan.frame_blocks import FrameBlocks, ReplyForm, as_read, with_examples, with_gold
from cardiolens.inference.plan.planned_study import (
    ExampleBlock,
    FrameBlock,
    PlannedQuestion,
    PlannedStudy,
    StudyFrames,
    View,
    flag_of,
)
from cardiolens.inference.plan.request import Request, RequestColumns, hash_frames, hash_model, request_key
from cardiolens.protocol.dialogue.chain import Chain, Samples, Stage, Steps
from cardiolens.protocol.dialogue.frame_requests import Choice, Offer
from cardiolens.protocol.prompts.case_prompts import before_answer
from cardiolens.protocol.prompts.frame_request_prompt import Asking, Turns, asking, listed, offered
from cardiolens.protocol.prompts.frames import FLAG as VIDEO_FLAG
from cardiolens.protocol.prompts.frames import CaptionLevel
from cardiolens.protocol.prompts.question import with_points_of_paper
from cardiolens.protocol.prompts.template import (
    Style,
    question_block,
    system_message,
    template_folders,
    template_for,
)
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.protocol.tasks.legal import FREE, constraint_of
from cardiolens.protocol.tasks.twins import LESION, is_twin
from cardiolens.storage.schemas import PLANNED


def offer_among(study: PlannedStudy, frames: tuple[Frame, ...], caption: CaptionLevel) -> Offer:
    """Return the offer of frames among which a reader may choose."""
    if frames not in study.offers:
        offer = offered(frames, study.structure, caption)
        pictures = [study.pictures[frame.volume_id, frame.idx][0] for frame in frames]
        study.offers[frames] = Offer(digest_of([list(map(list, offer)), pictures]), offer)
    return study.offers[frames]


def choice_of(arm: Arm, words: Asking, offer: Offer, max_tokens: int, stage_key: str) -> Choice:
    """Build the chain of a reader that chooses its frames."""
    return Choice(
        offer=offer,
        budget=frame_budget(arm),
        rounds=arm.selector.rounds,
        first=words.first,
        further=words.further,
        answer_one=words.answer_one,
        answer_many=words.answer_many,
        ask_max_tokens=tokens_to_ask(frame_budget(arm)),
        max_tokens=max_tokens,
        bound=arm.model.http is None or arm.model.http.dialect == "vllm",
        stage_key=stage_key,
    )


def stages_before(
    block: FrameBlock, endings: Sequence[str], max_tokens: int, decoding: tuple[str, ...]
) -> tuple[Stage, ...]:
    """Build the stages before the answer: free text after the same images."""
    return tuple(
        Stage(
            f"{block.text}{ending}",
            max_tokens,
            request_key(block.state, ending, FREE.text, str(max_tokens), *decoding),
        )
        for ending in endings
    )


def samples_of(prompt: str, max_tokens: int, key: Callable[..., str], arm: Arm) -> tuple[Stage, ...]:
    """Build the samples of one question; keys do not depend on their number, so more samples reuse fewer."""
    temperature, first = arm.prompt.temperature, arm.model.sampling.seed or 0
    assert temperature, "checked when the configuration was read"
    return tuple(
        Stage(prompt, max_tokens, key("sample", str(temperature), str(seed)), seed, temperature)
        for seed in range(first, first + arm.prompt.samples)
    )


def declared_by(chain: Chain | None) -> tuple[str, ...]:
    """Return the parts of a chain that also decide its last reply, for the request key."""
    if chain is None:
        return ()
    if isinstance(chain, Steps | Samples):
        return tuple(stage.key for stage in chain.stages)
    prompts = chain.first, chain.further, chain.answer_one, chain.answer_many
    return chain.stage_key, *prompts, *map(str, (chain.budget, chain.rounds, chain.bound))


def frame_budget(arm: Arm) -> int:
    """Return the frame budget of an arm whose reader chooses its frames."""
    assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
    return arm.budget


def largest_frames(study: PlannedStudy, offer: Sequence[Frame], budget: int) -> tuple[Frame, ...]:
    """Return the `budget` frames of an offer that have the most pixels as rendered."""

    def pixels(frame: Frame) -> int:
        height, width = study.pictures[frame.volume_id, frame.idx][1]
        return height * width

    return tuple(sorted(offer, key=pixels, reverse=True)[:budget])


def tokens_to_ask(budget: int) -> int:
    """Return the token limit of a reply that names frames, each of about 16 tokens."""
    return 64 + 24 * budget


ESTIMATED = "estimated_tokens"  # flag of a request whose tokens are estimated, not counted by a processor

_LONGEST_NOTE = "x " * 250  # as long as the note to a reader that named frames which do not exist

_Protocol = tuple[SelectorSpec, int | None, Budget]  # selector, its seed, budget


def _by_protocol(arms: Sequence[Arm]) -> dict[_Protocol, list[tuple[Arm, str]]]:
    """Group arms that show the same frames; each arm comes with its id."""
    grouped: dict[_Protocol, list[tuple[Arm, str]]] = {}
    for arm in arms:
        grouped.setdefault((arm.selector, arm.seed, arm.budget), []).append((arm, arm.arm_id))
    return grouped


class ModelPlanner:
    """Plans all requests of one model study by study, so that memory does not grow with the cohort."""

    def __init__(
        self,
        spec: SweepSpec,
        model: ModelSpec,
        identity: Identity,
        arms: Sequence[Arm],
        counter: TokenCounter | None,
    ) -> None:
        self._spec = spec
        self._model = model
        self._arms = _by_protocol(arms)
        self._estimated = (ESTIMATED,) if model.estimates_tokens else ()
        self._templates = cache(partial(template_folders, spec.templates))
        self._asked = hash_model(identity.model_key, model.sampling)
        self._keyed_by_arm = model.told_questions or not model.determined
        self._read = readings_of(model).keys() if model.answers_from == "readings" else None
        lends = any(arm.control == "other_patient" or arm.prompt.shots for arm in arms)
        self._frames = FrameSelector(Rendering(model.long_side), counter, lends=lends)
        self._blocks = FrameBlocks(spec, model, self._asked, self._frames, counter)
        self._form = ReplyForm(spec, model)
        self._examples = ExampleBlocks(self._frames, self._blocks, self._form, self._templates)

    def add_study(
        self,
        columns: RequestColumns,
        study_id: str,
        questions: Sequence[PlannedQuestion],
        frames_of: Callable[[str], StudyFrames],
    ) -> None:
        """Append the requests on one study, question by question; `frames_of` opens a study or a donor."""
        study = self._frames.study(frames_of, study_id)
        for question in questions:
            for protocol, arms in self._arms.items():
                selection = self._frames.select(study, question, *protocol)
                for arm, arm_id in arms:
                    if (arm.control == LESION) != is_twin(study_id):
                        continue
                    own_view = View(study_id, study, selection, arm.prompt.cine == "video")
                    view = self._frames.view(question, arm, own_view, frames_of)
                    solved = self._examples.solved(question, arm, arm_id, frames_of)
                    view = with_examples(view, question, arm, solved)
                    request, chain = self._request(question, arm, arm_id, view, solved)
                    columns.add(request)
                    if solved.examples and request.status == PLANNED:
                        columns.add_examples(request, solved.examples)
                    if chain is not None:
                        columns.add_chain(request.request_key, chain)

    def _request(
        self, question: PlannedQuestion, arm: Arm, arm_id: str, view: View, solved: ExampleBlock
    ) -> tuple[Request, Chain | None]:
        """Return the request, and its chain if it represents one."""
        view = as_read(with_gold(view, question.told, arm.prompt.gold), question.qa_id, arm, self._read)
        selection = view.selection
        worded = with_options(question.worded(arm.wording), arm.control, question.qa_id, question.suggestions)
        if arm.prompt.style == "paper":
            worded = with_points_of_paper(worded)
        display = SHOWN.get(arm.control, "frames")
        style: Style = "standard" if arm.prompt.style == "standard" else "reasoning"
        template = template_for(worded, style, self._templates(worded.protocol), display=display)
        offer, choosing = selection.frames, arm.selector.kind == "self" and selection.skipped is None
        if choosing:  # tokens are counted for the largest frames that the reader may choose
            largest = largest_frames(view.study, offer, frame_budget(arm))
            view = replace(view, selection=replace(selection, frames=largest))
            selection = replace(selection, frames=())
        block = self._blocks.show(system_message(template), view, question.told, arm.prompt.gold, solved)
        closing = self._form.closing
        ending = question_block(worded, len(view.told or selection.frames), template, closing)
        max_tokens = self._form.max_tokens(worded, arm.prompt)
        before, ending = before_answer(arm.prompt.steps, worded, len(selection.frames), ending)
        # The prompt repeats the replies to earlier steps.
        longest = max_tokens + len(before) * self._form.step_max_tokens(arm.prompt)
        words: Asking | None = None
        if choosing:
            listing = listed(offer, view.study.structure)
            turns = Turns(frame_budget(arm), arm.selector.rounds)
            words = asking(listing, worded, template, closing, turns)
            ending = f"{words.further}\n{words.answer_many}{_LONGEST_NOTE}"
            longest = max(max_tokens, tokens_to_ask(turns.frames))
        status, tokens = self._blocks.status(selection, block, ending, longest)
        answer_format, option_keys = (
            self._form.format_of(worded, arm.prompt),
            tuple(key for key, _ in worded.options),
        )
        constraint = constraint_of(answer_format, worded.answer_type, option_keys, worded.exclusive)
        replicate = int(arm.control == "repeat")
        several = arm.prompt.samples > 1 and worded.answer_type not in OPEN  # a report has no majority
        owner = (arm_id, question.qa_id) if self._is_own(several) else ()
        decoding = (constraint.text, str(max_tokens), str(replicate), *owner)
        prompt = f"{block.text}{ending}"
        n_before = arm.prompt.samples - 1 if several else len(before)
        chain: Chain | None = None
        if words is not None:
            declared = offer_among(view.study, offer, self._spec.caption)
            state = hash_frames(self._asked, block.system, "", (declared.key,))
            choice = choice_of(arm, words, declared, max_tokens, request_key(state, "", *decoding))
            prompt, n_before, chain = choice.opening, choice.rounds, choice
        elif before and status == PLANNED:
            stages = stages_before(
                block, before, self._form.step_max_tokens(arm.prompt), (str(replicate), *owner)
            )
            stages += (Stage(prompt, max_tokens, request_key(block.state, ending, *decoding)),)
            chain = Steps(stages)
        elif several and status == PLANNED:
            key = partial(request_key, block.state, ending, *decoding)
            chain = Samples(samples_of(prompt, max_tokens, key, arm))
        request = Request(
            arm_id=arm_id,
            qa_id=question.qa_id,
            study_id=question.study_id,
            frames_study_id=view.study_id,
            subtask=worded.subtask,
            frames=selection.frames,
            system=block.system,
            prompt=prompt,
            template=template.name,
            answer_format=answer_format,
            answer_type=worded.answer_type,
            option_keys=option_keys,
            exclusive=worded.exclusive,
            max_tokens=max_tokens,
            stage=n_before,
            replicate=replicate,
            flags=(
                *selection.flags,
                *self._estimated,
                *([flag_of(solved.examples)] if solved.examples else []),
                *([f"{VIDEO_FLAG}{block.n_videos}"] if block.n_videos else []),
            ),
            status=status,
            predicted_tokens=tokens,
            request_key=request_key(block.state, ending, *decoding, *declared_by(chain)),
        )
        return request, chain if status == PLANNED else None

    def _is_own(self, several: bool) -> bool:
        """Return whether an arm shares no completion with other arms; samples have seeds and may share."""
        return self._model.told_questions if several else self._keyed_by_arm
