"""Chains in which a reader requests frames of a study by name: what is on offer, and the prompts."""

from collections.abc import Sequence

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.protocol.dialogue.chain import (
    N_LEFT,
    N_SEEN,
    N_SHOWN,
    REFUSALS,
    REQUEST_NUMBER,
    Choice,
    Offer,
    OfferedFrame,
    mark,
)
from cardiolens.protocol.prompts.frames import CaptionLevel, captions, word_of_phase, words_of
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import Closing, Template, question_block
from cardiolens.protocol.select.selection import Frame
from cardiolens.study.structure import StudyStructure, VolumeStructure

FRAME_REQUESTS = 2  # most requests for frames before the answer
_NUMBER = 7_777_777  # trial number of frames: shows where a template writes it
_FORM = 'Reply with JSON alone, with names as in the list: {"frames": ["<name>", ...]}'


def offer_of(
    frames: Sequence[Frame], structure: StudyStructure, level: CaptionLevel, keys: Sequence[str]
) -> Offer:
    """Return frames, each with its key, under the names and captions by which a reader may request them."""
    volumes = structure.volumes
    offered = tuple(
        OfferedFrame(
            name_of(frame, volumes[frame.volume_id]),
            frame.volume_id,
            frame.idx,
            captions(volumes[frame.volume_id], level)[frame.idx],
        )
        for frame in frames
    )
    return Offer(digest_of([list(map(list, offered)), keys]), offered)


def name_of(frame: Frame, volume: VolumeStructure) -> str:
    """Return the name of a frame: volume, then slice and phase if there are several: `cine_4ch phase 1`."""
    where = f" slice {frame.slice + 1}" if volume.n_slices > 1 else ""
    when = f" {word_of_phase(volume)} {frame.phase + 1}" if volume.n_phases > 1 else ""
    return f"{volume.volume_id}{where}{when}"


def choice_of(
    offer: Offer,
    structure: StudyStructure,
    question: AskedQuestion,
    template: Template,
    closing: Closing,
    *,
    budget: int,
    max_tokens: int,
    bound: bool,
    stage_key: str,
) -> Choice:
    """Return the chain of a question: requests for at most `budget` frames on offer, and the answer."""
    options = "".join(f"{letter}. {text}\n" for letter, text in question.displayed)
    intro = (
        f"Frames of the study, by name:\n{_listed(offer, structure)}"
        f"Question, which you will answer afterwards: {question.question}\n{options}{mark(REFUSALS)}"
    )
    turn = f"This is request {mark(REQUEST_NUMBER)} of {FRAME_REQUESTS}"
    most = f"{budget} frame{'' if budget == 1 else 's'}"
    return Choice(
        offer=offer,
        budget=budget,
        rounds=FRAME_REQUESTS,
        first=f"{intro}Choose the frames to look at, at most {most} in all. {turn}. {_FORM}",
        further=(
            f"{intro}Shown above: {mark(N_SEEN)}. You may ask for {mark(N_LEFT)} more, "
            f"at most {most} in all, or for none with an empty list. {turn}. {_FORM}"
        ),
        answer_one=question_block(question, 1, template, closing),
        answer_many=_many(question, template, closing, budget),
        ask_max_tokens=64 + 24 * budget,  # a name has about 16 tokens
        max_tokens=max_tokens,
        bound=bound,
        stage_key=stage_key,
    )


def _listed(offer: Offer, structure: StudyStructure) -> str:
    """Return the list of the volumes on offer, with the first frame's name as an example."""
    names = dict.fromkeys(frame.volume_id for frame in offer.frames)
    lines = "".join(f"{_line(structure.volumes[name])}\n" for name in names)
    return f"{lines}The first of them, for example, is: {offer.frames[0].name}\n"


def _line(volume: VolumeStructure) -> str:
    """Return one line of the list: the pattern of frame names in a volume, its view, and ranges."""
    axis = volume.slice_axis
    slices, phases = volume.n_slices > 1, volume.n_phases > 1
    along = f" ({axis.words})" if volume.levels_known and axis is not None else ""
    name = (
        f"{volume.volume_id}{' slice S' if slices else ''}{f' {word_of_phase(volume)} P' if phases else ''}"
    )
    ranges = f"{f', S 1 to {volume.n_slices}{along}' if slices else ''}" + (
        f", P 1 to {volume.n_phases}" if phases else ""
    )
    return f"- {name}: {words_of(volume)}{ranges}"


def _many(question: AskedQuestion, template: Template, closing: Closing, budget: int) -> str:
    """Render the question after several frames, with a mark for their number."""
    text = question_block(question, _NUMBER, template, closing).replace(str(_NUMBER), mark(N_SHOWN))
    for number in {2, budget} - {1}:
        if text.replace(mark(N_SHOWN), str(number)) != question_block(question, number, template, closing):
            raise InputError(
                f"template {template.name}: has different wording for {number} frames than for other "
                "numbers, and the number that a reader will request is unknown; write {{ n }} alone, with a "
                "special case for one frame at most, or leave selector self out"
            )
    return text
