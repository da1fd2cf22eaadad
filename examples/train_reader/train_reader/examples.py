"""Training examples: questions of phantom studies as the planner words them, with the frames it selects.

A pack has the frames of one selection once, and every question about them, so that a question costs only the
tokens of its own words. This module words no prompt and selects or renders no frame: the planner, the shards
and the model's own processor do, as in a sweep.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.config.compose import read_spec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm, Control
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.frame_views import BLANK, StudyFrames, reversed_options
from cardiolens.inference.plan.inputs import Inputs, read_inputs
from cardiolens.inference.plan.planner import ModelPlanner
from cardiolens.inference.plan.request import PlannedQuestion, Request
from cardiolens.phantom.signal import MUSCLE_ARRIVAL
from cardiolens.protocol.tasks.legal import letters_of
from cardiolens.storage.schemas import PLANNED
from cardiolens.study.manifest import read_study
from cardiolens.study.overlay import read_overlay
from cardiolens.study.shards import FrameDigest, read_frames, shaped
from cardiolens.study.structure import structures
from train_reader.recipe import CohortSpec, ReaderSpec
from train_reader.tiny import IMAGE_SIDE
from train_reader.tissues import healed, pixel_kinds

Pictures = NDArray[np.uint8]
Places = tuple[tuple[str, int], ...]  # volume_id and canonical index of each frame

MODEL = ModelSpec(name="reader_small", source="trained here", long_side=IMAGE_SIDE)
BUDGETS = {1: 0.04, 4: 0.15, 8: 0.45, 16: 0.28, 32: 0.07, 64: 0.01}
SELECTORS = {"clinical": 0.5, "random": 0.3, "stratified": 0.15, "uniform": 0.05}
# Share of packs by control: the model must learn how to answer without images too.
_SHOWN: Mapping[Control, float] = {"none": 0.92, "blind": 0.04, "blank": 0.04}
_REASONED = 0.15  # share of questions
# Orders of the options of a question in a pack: in one order alone, letters are learned instead of words.
_ORDERS = 3
_POINTS = 5  # lines of a reasoned reply
# Share of frames by sequence in stage `see`: lesions are scarce, and cine shows none.
_FRAMES = {"cine": 0.2, "lge": 0.35, "perfusion": 0.25, "t2": 0.2}
# Relative frequency of question groups (which share views) by sequence, and of groups with a given subtask.
_WEIGHTS = {"cine": 0.15, "lge": 2.0, "perfusion": 2.0, "t2": 1.5, "multi": 1.5}
_OFTEN = {"C01": 3.0}  # with C02, C05, C06, C09 and C10


@dataclass(frozen=True, slots=True)
class PackQuestion:
    """One question of a pack: its words after the frames, and each form of its correct answer."""

    subtask: str
    words: str  # prompt text after the last frame
    replies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pack:
    """The frames of one selection and the questions about them."""

    shown: str  # prompt text up to the last frame; empty without frames
    pictures: Pictures  # (frame, row, column)
    asked: tuple[PackQuestion, ...]


class Cohort:
    """A prepared phantom cohort with its questions and answers."""

    def __init__(self, training: ReaderSpec, cohort: CohortSpec) -> None:
        self._spec = cohort_spec(training, cohort)
        self._inputs: Inputs = read_inputs(self._spec)
        self._known = structures(self._inputs.volumes)
        self._rendering = Rendering(MODEL.long_side)

    @property
    def study_ids(self) -> tuple[str, ...]:
        return tuple(study for study in self._known if self._inputs.questions[study])

    @cached_property
    def _answers(self) -> dict[str, tuple[str, ...]]:
        table = self._inputs.question_table
        return {
            qa_id: tuple(answer or ())
            for qa_id, answer in zip(table["qa_id"].to_pylist(), table["answer"].to_pylist(), strict=True)
        }

    def pack(self, study_id: str, chat: Chat, draw: Random) -> Pack | None:
        """Draw a selection of a study and the questions about it; None if no request can be planned."""
        groups: dict[object, list[PlannedQuestion]] = defaultdict(list)
        for question in self._inputs.questions[study_id]:
            if question.asked.answer_type != "report":
                groups[question.subtask.sequence, question.subtask.route].append(question)
        weights = [_weight(group) for group in groups.values()]
        group = draw.choices(list(groups.values()), weights)[0]
        control: Control = _drawn(_SHOWN, draw)
        requests = list(self._requests(study_id, group, control, draw))
        if not requests:
            return None
        places: Places = tuple((frame.volume_id, frame.idx) for frame in requests[0].frames)
        pictures = self._pictures(study_id, places)
        if BLANK in requests[0].flags:
            pictures[:] = 0
        frame_text, questions = "", []
        for request in requests:
            if request.frames != requests[0].frames:
                continue  # a route with the same views may still select other frames
            prompt_text = chat.prompt(request.system, request.prompt)
            frame_text, words = _halves(prompt_text)
            questions.append(PackQuestion(request.subtask, words, self._replies(request)))
        return Pack(frame_text, pictures, tuple(questions))

    def volume(self, study_id: str, draw: Random, most: int) -> tuple[Pictures, NDArray[np.uint8]]:
        """Draw up to `most` frames of one volume, with tissue kinds; both have axes (frame, row, column)."""
        rows = self._rows(study_id)
        of_sequence: dict[str, list[Any]] = defaultdict(list)
        for row in rows.to_pylist():
            of_sequence[row["sequence"]].append(row)
        frames = sorted(of_sequence)
        row = draw.choice(of_sequence[draw.choices(frames, [_FRAMES[name] for name in frames])[0]])
        n_frames = row["n_slices"] * row["n_phases"]
        chosen = sorted(draw.sample(range(n_frames), min(most, n_frames)))
        pictures = self._pictures(study_id, tuple((row["volume_id"], idx) for idx in chosen))
        study = read_study(self._spec.dataset.studies / study_id)
        manifest = next(one for one in study.manifest.volumes if one.volume_id == row["volume_id"])
        overlay = read_overlay(study, manifest)
        assert overlay is not None, "a training cohort is made with masks"
        masks = [overlay.mask.displayed(overlay.mask.frames[idx]) for idx in chosen]
        kinds = np.stack([pixel_kinds(mask, IMAGE_SIDE) for mask in masks])
        if row["sequence"] == "perfusion":
            early = [idx % row["n_phases"] <= MUSCLE_ARRIVAL for idx in chosen]
            kinds[early] = healed(kinds[early])
        return pictures, kinds

    def _requests(
        self, study_id: str, group: Sequence[PlannedQuestion], control: Control, draw: Random
    ) -> Iterator[Request]:
        selector = _drawn(SELECTORS, draw)
        spec = next(selector_spec for selector_spec in self._spec.selector if selector_spec.name == selector)
        seed = draw.randrange(1 << 16) if spec.seeds else None
        budget = _drawn(BUDGETS, draw)
        prompts = {prompt.name: prompt for prompt in self._spec.prompt}
        for question in group:
            for ordered in in_orders(question, draw):
                style = "reasoning" if draw.random() < _REASONED else "standard"
                arm = Arm(MODEL, spec, seed, budget, prompts[style], control, draw.randrange(3))
                planner = ModelPlanner(self._spec, MODEL, _IDENTITY, [arm], None, frames_of=self._frames_of)
                requests = planner.requests([ordered])
                yield from (request for request in requests if request.status == PLANNED)

    def _replies(self, request: Request) -> tuple[str, ...]:
        """Return the correct answer in the prompt's format, and in that of constrained decoding."""
        letters = ", ".join(
            sorted(
                letters_of(request.option_keys)[request.option_keys.index(key)]
                for key in self._answers[request.qa_id]
            )
        )
        if "_reasoning" in request.template:
            points = "".join(f"{point}. seen\n" for point in range(1, _POINTS + 1))
            return (f"{points}ANSWER: {letters}",)
        return f"ANSWER: {letters}", letters

    def _frames_of(self, study_id: str) -> StudyFrames:
        """Return the study for a plan, with empty digests: training uses no request keys."""
        sizes = {
            (row["volume_id"], idx): FrameDigest("", row["height"], row["width"])
            for row in self._rows(study_id).to_pylist()
            for idx in range(row["n_slices"] * row["n_phases"])
        }
        return StudyFrames(self._known[study_id], sizes)

    def _rows(self, study_id: str) -> Any:
        volumes = self._inputs.volumes
        return volumes.filter(pc.equal(volumes["study_id"], study_id))

    def _pictures(self, study_id: str, places: Places) -> Pictures:
        frames_of: dict[str, list[int]] = defaultdict(list)
        for volume_id, idx in places:
            frames_of[volume_id].append(idx)
        pictures = {}
        if frames_of:
            for row in read_frames(self._inputs.store.root, self._rows(study_id), frames_of):
                pixels = shaped(row["pixels"], row["height"], row["width"], row["channels"])
                pictures[row["volume_id"], row["idx"]] = self._rendering.apply(pixels)
        return (
            np.stack([pictures[place] for place in places])
            if places
            else np.empty((0, IMAGE_SIDE, IMAGE_SIDE), np.uint8)
        )


def cohort_spec(training: ReaderSpec, cohort: CohortSpec) -> SweepSpec:
    """Return the sweep configuration of a training cohort, with all selectors and prompts to draw from."""
    data = training.out / "data" / cohort.name
    return read_spec(
        [
            "dataset=phantom_ci",
            f"dataset.name={cohort.name}",
            f"dataset.studies={data / 'studies'}",
            f"dataset.questions={data / 'questions.jsonl'}",
            f"dataset.protocol={training.protocol}",
            f"dataset.phantom.seed={cohort.seed}",
            f"dataset.phantom.n_sampled={cohort.studies}",
            f"dataset.phantom.size={cohort.size}",
            f"dataset.phantom.difficulty={cohort.difficulty}",
            "dataset.phantom.also=[masks]",
            f"store={training.out / 'stores' / cohort.name}",
            "model=[oracle]",
            f"selector=[{','.join(SELECTORS)}]",
            "prompt=[standard,reasoning]",
        ]
    )


def in_orders(question: PlannedQuestion, draw: Random) -> Iterator[PlannedQuestion]:
    """Yield a question with its options as the protocol orders them, then in other orders.

    An ordinal question has one other order, from most to least severe, of which its prompt speaks.
    """
    yield question
    asked = question.asked
    if asked.answer_type == "ordinal":
        yield replace(question, asked=reversed_options(asked))
        return
    orders = {asked.options}
    for _ in range(_ORDERS - 1):
        order = tuple(draw.sample(asked.options, len(asked.options)))
        if order not in orders:
            orders.add(order)
            yield replace(question, asked=replace(asked, options=order))


_IDENTITY = Identity("reader", None, {})


def _drawn(weights: Mapping[Any, float], draw: Random) -> Any:
    return draw.choices(list(weights), list(weights.values()))[0]


def _weight(group: Sequence[PlannedQuestion]) -> float:
    first = group[0].asked
    return max([_WEIGHTS[first.sequence], *(_OFTEN.get(ask.asked.subtask, 0.0) for ask in group)])


def _halves(prompt: str) -> tuple[str, str]:
    """Split a prompt after its last image; without an image, the first half is empty."""
    before, image, after = prompt.rpartition("<image>")
    return f"{before}{image}", after
