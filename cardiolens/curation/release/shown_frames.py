"""The frames that a table shows to a question: those that a sweep shows unless told otherwise.

Selector clinical, at most 16 frames, captions that name the view, the prompt of style standard. Frames are
PNG of the native size, as displayed; a sweep resizes them to what its model takes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

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
from cardiolens.protocol.tasks.questions import Question
from cardiolens.show.page.case_viewer.pictures import encoded
from cardiolens.storage.schemas import FRAME
from cardiolens.study.manifest import Study

SELECTOR, BUDGET = SelectorSpec(name="clinical", kind="clinical"), 16  # as conf/sweep.yaml has them
SHOWN = {"selector": SELECTOR.name, "budget": BUDGET}  # as the index of a release says it
PLACE = "<image>"  # of a frame in a prompt, in the words of most harnesses


Row = dict[str, Any]  # of a table


def shown_frames(study: Study, questions: Iterable[Question], catalogue: Catalogue) -> Mapping[str, Row]:
    """Return what each question on a study shows, by qa_id, as columns of a table; the study is read once.

    InputError for a question whose words hold the mark of a frame's place.
    """
    seen = look_at(study, Windows())
    pngs: dict[tuple[str, int], bytes] = {}
    rows: dict[str, Row] = {}
    for question in questions:
        subtask = catalogue[question.subtask]
        selection = choose(SELECTOR, None, seen.structure, Route.of(subtask), BUDGET)
        places = [(frame.volume_id, frame.idx) for frame in selection.frames]
        for volume_id, idx in places:
            if (volume_id, idx) not in pngs:
                pngs[volume_id, idx] = encoded(seen.pixels[volume_id][idx])
        options = tuple((option.key, option.text) for option in question.options)
        asked = asked_of(subtask, catalogue, question.question, options)
        message = render(selection.frames, seen.structure, asked, template_for(asked, "standard"), "view")
        if PLACE in message.text:
            raise InputError(
                f"{question.qa_id}: holds {PLACE}, which marks the place of a frame in tables; reword it"
            )
        volumes = seen.structure.volumes
        rows[question.qa_id] = {
            "frames": [{"bytes": pngs[place], "path": f"{place[0]}-{place[1]}.png"} for place in places],
            "captions": [captions(volumes[name], "view")[idx].strip() for name, idx in places],
            "system": message.system,
            "prompt": message.text.replace(FRAME, PLACE),
            "skipped": selection.skipped,
        }
    return rows
