"""Plan the requests of one model on one study: every question under every arm."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import NamedTuple

from cardiolens.base.digest import digest_of
from cardiolens.base.entry_points import is_word
from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import Budget, PromptSpec, SelectorSpec, SweepSpec
from cardiolens.inference.models.human_reader import readings_of
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.models.rendering import Rendering, frame_key
from cardiolens.inference.models.token_counts import TokenCounter
from cardiolens.inference.plan.control import BLANK, SHOWN, blank_digest, with_options
from cardiolens.inference.plan.control_plugin import changed_selection
from cardiolens.inference.plan.keys import hash_frames, hash_model, request_key
from cardiolens.inference.plan.planned_question import PlannedQuestion, SolvedExample
from cardiolens.inference.plan.request import Request
from cardiolens.inference.plan.request_columns import RequestColumns
from cardiolens.inference.plan.shown_examples import ShownExample, flag_of
from cardiolens.protocol.dialogue.chain import Chain, Samples, Stage, Steps
from cardiolens.protocol.dialogue.frame_requests import Choice, Offer
from cardiolens.protocol.medthinkvqa.case_text import CaseText, Gold
from cardiolens.protocol.prompts.case_block import case_block, lacking
from cardiolens.protocol.prompts.case_steps import before_answer
from cardiolens.protocol.prompts.example_words import after_examples, example_block, solution
from cardiolens.protocol.prompts.frame_request_prompt import Asking, Turns, asking, listed, offered
from cardiolens.protocol.prompts.frames import caption_block, frame_block
from cardiolens.protocol.prompts.prompt_rendering import Closing, question_block, system_message
from cardiolens.protocol.prompts.question import AskedQuestion, with_points_of_paper
from cardiolens.protocol.prompts.template import Style, template_folders, template_for
from cardiolens.protocol.prompts.videos import FLAG as VIDEO_FLAG
from cardiolens.protocol.prompts.videos import count_videos, video_block
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import Features
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.protocol.select.token_budget import fitting
from cardiolens.protocol.tasks.legal import FREE, constraint_of
from cardiolens.storage.schemas import FRAME, OVERFLOW, PLANNED
from cardiolens.study.shards import FrameDigest
from cardiolens.study.structure import StudyStructure

ESTIMATED = "estimated_tokens"  # flag of a request whose tokens are estimated, not counted by a processor

_OPEN = 2  # studies kept open, of some megabytes each
_DONORS = 256  # studies kept open that show for many others: control other_patient, examples
_SOLUTIONS = 4096  # texts of examples kept, one for each arm and subtask if few patients are left out
_LONGEST_NOTE = "x " * 250  # as long as the note to a reader that named frames which do not exist
_NEAR = 0.9  # of a model's limit; above, tokens are counted exactly


@dataclass(frozen=True, slots=True)
class _FrameBlock:
    """The part of a prompt that all requests with the same list of frames share."""

    system: str
    text: str
    state: "blake2b"  # hash of the request key, up to the question
    sizes: tuple[tuple[int, int], ...]  # (height, width) of the frames as rendered
    rest: str = ""  # the text after the last frame
    counted: tuple[int, str] | None = None  # tokens up to the last frame; template text after the question
    n_videos: int = 0


_Picture = tuple[str, tuple[int, int]]  # frame key; height and width as rendered


@dataclass(frozen=True, slots=True)
class StudyFrames:
    """The frames of a study: structure, digests, and features by encoder if a selector needs them."""

    structure: StudyStructure
    digests: Mapping[tuple[str, int], FrameDigest]
    features: Features


@dataclass(frozen=True, slots=True)
class _Study:
    """Data shared by all requests that show one study."""

    structure: StudyStructure
    pictures: Mapping[tuple[str, int], _Picture]  # by volume_id, idx
    features: Features
    digests: Mapping[tuple[str, int], FrameDigest]
    shown: dict[object, _FrameBlock] = field(default_factory=dict)
    offers: dict[tuple[Frame, ...], Offer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _View:
    """The frames that one request shows, and their study."""

    study_id: str | None  # None for a request that shows no frames
    study: _Study
    selection: Selection
    as_video: bool = False  # whether phases of a slice are shown as a video
    told: tuple[Frame, ...] = ()  # frames shown by their captions alone


class _Solved(NamedTuple):
    """Solved examples of other patients: the text before a question's own frames, and their frames."""

    text: str = ""
    pictures: tuple[_Picture, ...] = ()
    examples: tuple[ShownExample, ...] = ()


_UNSOLVED = _Solved()  # of a prompt without examples

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
        self._counter = counter  # None if nothing counts tokens, as for a simulated reader
        self._estimated = (ESTIMATED,) if model.estimates_tokens else ()
        self._rendering = Rendering(model.long_side)
        self._templates = template_folders(spec.templates, spec.dataset.protocol)
        self._asked = hash_model(identity.model_key, model.sampling)
        self._keyed_by_arm = model.told_questions or not model.determined
        self._read = readings_of(model).keys() if model.answers_from == "readings" else None
        lends = any(arm.control == "other_patient" or arm.prompt.shots for arm in arms)
        self._solutions: dict[tuple[str, tuple[str, ...]], _Solved] = {}  # by arm and qa_ids on offer
        self._study = lru_cache(maxsize=_DONORS if lends else _OPEN)(self._open)

    def add_study(
        self,
        columns: RequestColumns,
        study_id: str,
        questions: Sequence[PlannedQuestion],
        frames_of: Callable[[str], StudyFrames],
    ) -> None:
        """Append the requests on one study, question by question; `frames_of` opens a study or a donor."""
        study = self._study(frames_of, study_id)
        for question in questions:
            for protocol, arms in self._arms.items():
                selection = self._select(study, question, *protocol)
                for arm, arm_id in arms:
                    own_view = _View(study_id, study, selection, as_video=_as_video(arm))
                    view = self._view(question, arm, own_view, frames_of)
                    solved = self._solved(question, arm, arm_id, frames_of)
                    view = self._with_examples(view, question, arm, solved)
                    request, chain = self._request(question, arm, arm_id, view, solved)
                    columns.add(request)
                    if solved.examples and request.status == PLANNED:
                        columns.add_examples(request, solved.examples)
                    if chain is not None:
                        columns.add_chain(request.request_key, chain)

    def _open(self, frames_of: Callable[[str], StudyFrames], study_id: str) -> _Study:
        frames = frames_of(study_id)
        return _Study(frames.structure, self._rendered(frames.digests), frames.features, frames.digests)

    def _view(
        self, question: PlannedQuestion, arm: Arm, own_view: _View, frames_of: Callable[[str], StudyFrames]
    ) -> _View:
        """Return the frames to show under the arm's control; by default those of the question's own study."""
        selection = own_view.selection
        if is_word(arm.control):
            changed = changed_selection(arm.control, selection, own_view.study.structure)
            return replace(own_view, selection=changed)
        if arm.control in SHOWN:
            nothing = replace(selection, frames=(), flags=())
            told_frames = selection.frames if arm.control == "captions" else ()
            return replace(own_view, study_id=None, selection=nothing, told=told_frames)
        if arm.control == "blank":
            return replace(own_view, selection=replace(selection, flags=(*selection.flags, BLANK)))
        if arm.control != "other_patient":
            return own_view
        if question.donor is None:
            why = selection.skipped or "no other patient with the same views"
            return replace(own_view, selection=Selection((), selection.flags, why))
        donor = self._study(frames_of, question.donor)
        shown = self._select(donor, question, arm.selector, arm.seed, arm.budget)
        return _View(question.donor, donor, shown, as_video=own_view.as_video)

    def _solved(
        self, question: PlannedQuestion, arm: Arm, arm_id: str, frames_of: Callable[[str], StudyFrames]
    ) -> _Solved:
        """Return the examples of an arm for a question; none for a report, or if there are too few."""
        if not arm.prompt.shots or question.asked.answer_type == "report":
            return _UNSOLVED
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
    ) -> _Solved:
        """Show the first of the lent questions that have frames, each as the arm shows a question."""
        texts, pictures, examples = list[str](), list[_Picture](), list[ShownExample]()
        for example in lent:
            if len(examples) == arm.prompt.shots:
                break
            view = self._example_view(example.question, arm, frames_of)
            if view.selection.skipped is None:
                number = len(examples) + 1
                texts.append(self._example_text(example, arm, view, number))
                pictures += self._pictures(view)
                qa_id, study_id = example.question.qa_id, example.question.study_id
                examples.append(ShownExample(qa_id, study_id, view.selection.frames))
        if len(examples) < arm.prompt.shots:
            return _UNSOLVED
        return _Solved(after_examples("".join(texts)), tuple(pictures), tuple(examples))

    def _example_view(
        self, question: PlannedQuestion, arm: Arm, frames_of: Callable[[str], StudyFrames]
    ) -> _View:
        """Return what the arm shows of an example; control other_patient shows an example its own frames."""
        study = self._study(frames_of, question.study_id)
        selection = self._select(study, question, arm.selector, arm.seed, arm.budget)
        own_view = _View(question.study_id, study, selection, as_video=_as_video(arm))
        if arm.control == "other_patient":
            return own_view
        return self._view(question, arm, own_view, frames_of)

    def _example_text(self, example: SolvedExample, arm: Arm, view: _View, number: int) -> str:
        """Render an example without points to work through: its answer has no reasons."""
        question = example.question
        worded = with_options(question.worded(arm.wording), arm.control, question.qa_id)
        display = SHOWN.get(arm.control, "frames")
        template = template_for(worded, "standard", self._templates, display=display)
        n_frames = len(view.told or view.selection.frames)
        text = self._text(view, None, "none") + question_block(worded, n_frames, template, self._closing)
        reply = solution(worded, example.answer, self._format_of(worded, arm.prompt))
        return example_block(text, reply, number, arm.prompt.shots)

    def _select(
        self,
        study: _Study,
        question: PlannedQuestion,
        selector: SelectorSpec,
        seed: int | None,
        budget: Budget,
    ) -> Selection:
        features, words = study.features.get(selector.encoder), question.asked.question

        def at(n_frames: int) -> Selection:
            return choose(
                selector, seed, study.structure, question.route, n_frames, features=features, question=words
            )

        def tokens_of(frame: Frame) -> int:
            assert self._counter is not None, "a token budget is refused for a reader without tokens"
            return self._counter.image_tokens(study.pictures[frame.volume_id, frame.idx][1])

        if isinstance(budget, int):
            return at(budget)
        return fitting(at, tokens_of, budget.tokens, available=len(study.pictures))

    def _rendered(self, digests: Mapping[tuple[str, int], FrameDigest]) -> dict[tuple[str, int], _Picture]:
        rendering = self._rendering.digest
        return {
            place: (frame_key(digest, rendering), self._rendering.size(height, width))
            for place, (digest, height, width) in digests.items()
        }

    def _request(
        self, question: PlannedQuestion, arm: Arm, arm_id: str, view: _View, solved: _Solved
    ) -> tuple[Request, Chain | None]:
        """Return the request, and its chain if it represents one."""
        view = self._as_read(self._with_gold(view, question.told, arm.prompt.gold), question.qa_id, arm)
        selection = view.selection
        worded = with_options(question.worded(arm.wording), arm.control, question.qa_id)
        if arm.prompt.style == "paper":
            worded = with_points_of_paper(worded)
        display = SHOWN.get(arm.control, "frames")
        style: Style = "standard" if arm.prompt.style == "standard" else "reasoning"
        template = template_for(worded, style, self._templates, display=display)
        offer, choosing = selection.frames, arm.selector.kind == "self" and selection.skipped is None
        if choosing:  # tokens are counted for the largest frames that the reader may choose
            largest = _largest(view.study, offer, _frames_of(arm))
            view = replace(view, selection=replace(selection, frames=largest))
            selection = replace(selection, frames=())
        block = self._show(system_message(template), view, question.told, arm.prompt.gold, solved)
        closing = self._closing
        ending = question_block(worded, len(view.told or selection.frames), template, closing)
        max_tokens = self._max_tokens(worded, arm.prompt)
        before, ending = before_answer(arm.prompt.steps, worded, len(selection.frames), ending)
        longest = max_tokens + len(before) * arm.prompt.step_max_tokens  # the prompt repeats earlier replies
        words: Asking | None = None
        if choosing:
            listing = listed(offer, view.study.structure)
            turns = Turns(_frames_of(arm), arm.selector.rounds)
            words = asking(listing, worded, template, closing, turns)
            ending = f"{words.further}\n{words.answer_many}{_LONGEST_NOTE}"
            longest = max(max_tokens, _tokens_to_ask(turns.frames))
        status, tokens = self._status(selection, block, ending, longest)
        answer_format, option_keys = (
            self._format_of(worded, arm.prompt),
            tuple(key for key, _ in worded.options),
        )
        constraint = constraint_of(answer_format, worded.answer_type, option_keys, worded.exclusive)
        replicate = int(arm.control == "repeat")
        several = arm.prompt.samples > 1 and worded.answer_type != "report"  # a report has no majority
        owner = (arm_id, question.qa_id) if self._is_own(several) else ()
        decoding = (constraint.text, str(max_tokens), str(replicate), *owner)
        prompt = f"{block.text}{ending}"
        n_before = arm.prompt.samples - 1 if several else len(before)
        chain: Chain | None = None
        if words is not None:
            declared = self._offer(view.study, offer)
            state = hash_frames(self._asked, block.system, "", (declared.key,))
            choice = self._choice(arm, words, declared, max_tokens, request_key(state, "", *decoding))
            prompt, n_before, chain = choice.opening, choice.rounds, choice
        elif before and status == PLANNED:
            stages = self._stages(block, before, arm.prompt.step_max_tokens, (str(replicate), *owner))
            stages += (Stage(prompt, max_tokens, request_key(block.state, ending, *decoding)),)
            chain = Steps(stages)
        elif several and status == PLANNED:
            key = partial(request_key, block.state, ending, *decoding)
            chain = Samples(_samples(prompt, max_tokens, key, arm))
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
            request_key=request_key(block.state, ending, *decoding, *_declared(chain)),
        )
        return request, chain if status == PLANNED else None

    def _is_own(self, several: bool) -> bool:
        """Return whether an arm shares no completion with other arms; samples have seeds and may share."""
        return self._model.told_questions if several else self._keyed_by_arm

    def _offer(self, study: _Study, frames: tuple[Frame, ...]) -> Offer:
        """Return the offer of frames among which a reader may choose."""
        if frames not in study.offers:
            offer = offered(frames, study.structure, self._spec.caption)
            pictures = [study.pictures[frame.volume_id, frame.idx][0] for frame in frames]
            study.offers[frames] = Offer(digest_of([list(map(list, offer)), pictures]), offer)
        return study.offers[frames]

    def _choice(self, arm: Arm, words: Asking, offer: Offer, max_tokens: int, stage_key: str) -> Choice:
        """Build the chain of a reader that chooses its frames."""
        return Choice(
            offer=offer,
            budget=_frames_of(arm),
            rounds=arm.selector.rounds,
            first=words.first,
            further=words.further,
            answer_one=words.answer_one,
            answer_many=words.answer_many,
            ask_max_tokens=_tokens_to_ask(_frames_of(arm)),
            max_tokens=max_tokens,
            bound=self._model.http is None or self._model.http.dialect == "vllm",
            stage_key=stage_key,
        )

    def _stages(
        self, block: _FrameBlock, endings: Sequence[str], max_tokens: int, decoding: tuple[str, ...]
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

    def _with_gold(self, view: _View, case_text: CaseText | None, gold: Gold) -> _View:
        """Return the view; skip the request if the setting needs text that the case does not have."""
        frames = view.told or view.selection.frames
        why = None if case_text is None else lacking(case_text, frames, gold)
        if why is None or view.selection.skipped is not None:
            return view
        return replace(view, selection=Selection((), view.selection.flags, why))

    def _with_examples(self, view: _View, question: PlannedQuestion, arm: Arm, solved: _Solved) -> _View:
        """Return the view; skip the request if its prompt lacks the examples that it should show."""
        has_all = solved.examples or not arm.prompt.shots or question.asked.answer_type == "report"
        if has_all or view.selection.skipped is not None:
            return view
        why = f"fewer than {arm.prompt.shots} solved examples of other patients"
        return replace(view, selection=Selection((), view.selection.flags, why))

    def _as_read(self, view: _View, qa_id: str, arm: Arm) -> _View:
        """Return the view; skip the request if a person did not read the question, or not in this form."""
        if self._read is None:
            return view
        changed = arm.control != "none" or arm.wording or arm.prompt.steps != "none"
        changed = changed or arm.selector.kind == "self" or arm.prompt.shots or _as_video(arm)
        if view.selection.skipped is not None or (qa_id in self._read and not changed):
            return view
        why = "not read in this form" if changed else "not read"
        return replace(view, selection=Selection((), view.selection.flags, why))

    def _text(self, view: _View, case_text: CaseText | None, gold: Gold) -> str:
        """Render the text before the question, with placeholders of frames."""
        frames, structure, level = view.selection.frames, view.study.structure, self._spec.caption
        if case_text is not None:
            return case_block(case_text, view.told or frames, gold, level, pictures=not view.told)
        if view.told:
            return caption_block(view.told, structure, level)
        return (video_block if view.as_video else frame_block)(frames, structure, level)

    def _show(
        self, system: str, view: _View, case_text: CaseText | None, gold: Gold, solved: _Solved
    ) -> _FrameBlock:
        study, blank = view.study, BLANK in view.selection.flags
        key = (system, view.selection.frames, view.as_video, view.told, blank, case_text, gold, solved)
        block = study.shown.get(key)
        if block is None:
            text = solved.text + self._text(view, case_text, gold)
            pictures = [*solved.pictures, *self._pictures(view)]
            state = hash_frames(self._asked, system, text, tuple(key for key, _ in pictures))
            sizes = tuple(size for _, size in pictures)
            n_videos = count_videos(text) if view.as_video else 0
            block = self._counted(_FrameBlock(system, text, state, sizes, n_videos=n_videos))
            study.shown[key] = block
        return block

    def _counted(self, block: _FrameBlock) -> _FrameBlock:
        """Add the token count that all requests with this block share."""
        frames, separator, rest = block.text.rpartition(FRAME)
        if self._counter is None or not separator:
            return block
        counted = self._counter.count_shown(block.system, frames, block.sizes, exact=False)
        return replace(block, rest=rest, counted=counted)

    def _pictures(self, view: _View) -> list[_Picture]:
        """Return the frames of a view in the order shown; black ones under control blank."""
        study, blank = view.study, BLANK in view.selection.flags
        places = [(frame.volume_id, frame.idx) for frame in view.selection.frames]
        return [self._blank(study, place) if blank else study.pictures[place] for place in places]

    @property
    def _closing(self) -> Closing:
        return "json" if self._spec.answer_format == "json" else "letters"

    def _blank(self, study: _Study, place: tuple[str, int]) -> _Picture:
        key = frame_key(blank_digest(study.digests[place].digest), self._rendering.digest)
        return key, study.pictures[place][1]

    def _format_of(self, question: AskedQuestion, prompt: PromptSpec) -> str:
        """Return the form of the reply: only legal letters if direct, a last line of them if reasoned."""
        if question.answer_type == "report" or self._spec.answer_format != "choice":
            return self._spec.answer_format if question.answer_type != "report" else "json"
        return "choice" if prompt.style == "standard" else "last_line"

    def _max_tokens(self, question: AskedQuestion, prompt: PromptSpec) -> int:
        report = question.answer_type == "report"
        declared = self._model.max_tokens.get("report" if report else prompt.name)
        if declared is None and prompt.cine == "video":  # or the limit, too, would differ from the frames'
            declared = self._model.max_tokens.get(prompt.style)
        return declared or (prompt.report_max_tokens if report else prompt.max_tokens)

    def _status(
        self,
        selection: Selection,
        block: _FrameBlock,
        ending: str,
        max_tokens: int,
    ) -> tuple[str, int | None]:
        """Return the status (PLANNED, or why the request is not sent) and the prompt tokens if counted."""
        if selection.skipped is not None:
            return f"skipped: {selection.skipped}", None
        if self._counter is None:
            return PLANNED, None
        if block.counted is not None:
            before, tail = block.counted
            tokens = before + self._counter.count_asked(f"{block.rest}{ending}", tail)
        if block.counted is None or tokens + max_tokens > _NEAR * self._model.max_model_len:
            tokens = self._counter.count(block.system, f"{block.text}{ending}", block.sizes)
        return (OVERFLOW if tokens + max_tokens > self._model.max_model_len else PLANNED), tokens


def _as_video(arm: Arm) -> bool:
    """Return whether an arm shows the phases of a slice as a video."""
    return arm.prompt.cine == "video"


def _frames_of(arm: Arm) -> int:
    """Return the frame budget of an arm whose reader chooses its frames."""
    assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
    return arm.budget


def _largest(study: _Study, offer: Sequence[Frame], budget: int) -> tuple[Frame, ...]:
    """Return the `budget` frames of an offer that have the most pixels as rendered."""

    def pixels(frame: Frame) -> int:
        height, width = study.pictures[frame.volume_id, frame.idx][1]
        return height * width

    return tuple(sorted(offer, key=pixels, reverse=True)[:budget])


def _tokens_to_ask(budget: int) -> int:
    """Return the token limit of a reply that names frames, each of about 16 tokens."""
    return 64 + 24 * budget


def _samples(prompt: str, max_tokens: int, key: Callable[..., str], arm: Arm) -> tuple[Stage, ...]:
    """Build the samples of one question; keys do not depend on their number, so more samples reuse fewer."""
    temperature, first = arm.prompt.temperature, arm.model.sampling.seed or 0
    assert temperature, "checked when the configuration was read"
    return tuple(
        Stage(prompt, max_tokens, key("sample", str(temperature), str(seed)), seed, temperature)
        for seed in range(first, first + arm.prompt.samples)
    )


def _declared(chain: Chain | None) -> tuple[str, ...]:
    """Return the parts of a chain that also decide its last reply, for the request key."""
    if chain is None:
        return ()
    if isinstance(chain, Steps | Samples):
        return tuple(stage.key for stage in chain.stages)
    prompts = chain.first, chain.further, chain.answer_one, chain.answer_many
    return chain.stage_key, *prompts, *map(str, (chain.budget, chain.rounds, chain.bound))
