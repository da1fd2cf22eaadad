"""Controls of other packages: entry points of `cardiolens.controls` (docs/how-to/plugins.md)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from cardiolens.base.digest import digest_of
from cardiolens.base.entry_points import PluginError, blamed, make
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.study.structure import StudyStructure


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
    """Return a selection as a control shows it; PluginError if it shows what it may not."""
    if selection.skipped is not None:
        return selection
    with blamed(word):
        frames = tuple(open_control(word).frames(selection.frames, structure))
    for problem in _wrong_frames(frames, selection, structure):
        raise PluginError(f"plugin {word}: {problem}; its maker must correct it")
    return replace(selection, frames=frames)


def changed_question(word: str, question: AskedQuestion, qa_id: str) -> AskedQuestion:
    """Return a question as a control asks it; PluginError if it asks something else."""
    with blamed(word):
        changed = open_control(word).question(question, int(digest_of(qa_id)[:8], 16))
    for problem in _wrong_question(changed, question):
        raise PluginError(f"plugin {word}: {problem}; its maker must correct it")
    return changed


def _wrong_frames(frames: Sequence[object], selection: Selection, structure: StudyStructure) -> Iterator[str]:
    if not frames and selection.frames:
        yield "shows no frame; a request without frames is control blind"
    if len(frames) > len(selection.frames):
        yield f"shows {len(frames)} frames where {len(selection.frames)} were selected"
    for frame in frames:
        if not isinstance(frame, Frame):
            yield f"shows a {type(frame).__name__} that is no Frame"
            continue
        volume = structure.volumes.get(frame.volume_id)
        if volume is None or not 0 <= frame.idx < volume.n_frames:
            yield f"shows frame {frame.idx} of {frame.volume_id!r}, which the study does not have"
        elif (frame.slice, frame.phase) != divmod(frame.idx, volume.n_phases):
            yield f"shows frame {frame.idx} of {frame.volume_id} as slice {frame.slice}, phase {frame.phase}"


def _wrong_question(changed: object, question: AskedQuestion) -> Iterator[str]:
    if not isinstance(changed, AskedQuestion):
        yield f"returns a {type(changed).__name__} in the place of a question"
        return
    if sorted(changed.options) != sorted(question.options):
        yield "changes the options of a question; it may only change their order"
    if question.answer_type == "ordinal" and changed.options != question.options:
        yield "changes the order of ordinal options, which the prompt speaks of; see control reversed_options"
    fixed = ("question", "options", "checklist")
    for name in (name for name in AskedQuestion.__dataclass_fields__ if name not in fixed):
        if getattr(changed, name) != getattr(question, name):
            yield f"changes {name} of a question"
