"""The frames that a table shows to a question: those that a sweep shows unless told otherwise.

Selector clinical, at most 16 frames, captions that name the view, the prompt of style standard. Frames are
PNG of the native size, as displayed; a sweep resizes them to what its model takes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.prompts.frames import captions
from cardiolens.protocol.prompts.question import asked_of
from cardiolens.protocol.prompts.template import render, template_for
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.route import Route
from cardiolens.protocol.select.study_folder import look_at
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import FRAME_PLACE, Question
from cardiolens.show.page.case_viewer.pictures import encoded
from cardiolens.study.manifest import Study

SELECTOR, BUDGET = SelectorSpec(name="clinical", kind="clinical"), 16  # as conf/sweep.yaml has them
SHOWN = {"selector": SELECTOR.name, "budget": BUDGET}  # as the index of a release says it
PLACE = "<image>"  # of a frame in a prompt, in the words of most harnesses


@dataclass(frozen=True, slots=True)
class ShownFrames:
    """What a question shows: PNG files with their names, a caption each, and the prompt around them."""

    pictures: tuple[tuple[str, bytes], ...]
    captions: tuple[str, ...]
    system: str
    prompt: str
    skipped: str | None


def shown_frames(
    study: Study, questions: Iterable[Question], catalogue: Catalogue
) -> Mapping[str, ShownFrames]:
    """Return what each question on a study shows, by qa_id; the study is read once.

    InputError for a question whose words hold the mark of a frame's place.
    """
    seen = look_at(study, Windows())
    volumes = seen.structure.volumes
    drawn: dict[tuple[str, int], bytes] = {}
    shown: dict[str, ShownFrames] = {}
    for question in questions:
        subtask = catalogue[question.subtask]
        selection = choose(SELECTOR, None, seen.structure, Route.of(subtask), BUDGET)
        for frame in selection.frames:
            place = frame.volume_id, frame.idx
            if place not in drawn:
                drawn[place] = encoded(seen.pixels[frame.volume_id][frame.idx])
        options = tuple((option.key, option.text) for option in question.options)
        asked = asked_of(subtask, catalogue, question.question, options)
        told = render(selection.frames, seen.structure, asked, template_for(asked, "standard"), "view")
        if PLACE in told.text:
            raise InputError(
                f"{question.qa_id}: holds {PLACE}, which marks the place of a frame in tables; reword it"
            )
        shown[question.qa_id] = ShownFrames(
            tuple((f"{f.volume_id}-{f.idx}.png", drawn[f.volume_id, f.idx]) for f in selection.frames),
            tuple(captions(volumes[f.volume_id], "view")[f.idx].strip() for f in selection.frames),
            told.system,
            told.text.replace(FRAME_PLACE, PLACE),
            selection.skipped,
        )
    return shown
