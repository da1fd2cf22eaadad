"""One part of each kind for CardioLens; the entry points in pyproject.toml name them."""

from collections.abc import Mapping, Sequence
from zlib import crc32

from cardiolens.config.model import Sampling
from cardiolens.inference.engine.ask import Ask, Engine, FrameWork, Pictures, Reply
from cardiolens.inference.engine.readers import AnswerKey
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.legal import legal_replies, letters_of
from cardiolens.study.structure import StudyStructure, VolumeStructure


class Ends:
    """A selector of the first and last frames of the pool; of the first a share `first`."""

    def __init__(self, first: float = 0.5) -> None:
        self._first = first

    def select(
        self, pool: tuple[VolumeStructure, ...], budget: int, *, seed: int | None, question: str
    ) -> Sequence[tuple[str, int]]:
        places = [(volume.volume_id, idx) for volume in pool for idx in range(volume.n_frames)]
        n_first = round(self._first * budget)
        return places if len(places) <= budget else places[:n_first] + places[n_first - budget :]


class Backwards:
    """A control that shows the frames in the reverse order: does an answer depend on it?"""

    def frames(self, frames: tuple[Frame, ...], structure: StudyStructure) -> Sequence[Frame]:
        return frames[::-1]

    def question(self, question: AskedQuestion, seed: int) -> AskedQuestion:
        return question


class Brightness(Engine):
    """An engine that answers by the mean brightness of the frames: it reads pixels, and knows nothing."""

    def __init__(self, sampling: Sampling, offset: int = 0) -> None:
        self._offset = offset
        self._processed = 0

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        legal = ask.constraint.legal or legal_replies(ask.answer_type, ask.option_keys, ())
        means = [float(pictures(key).mean()) for key in ask.frame_keys]
        self._processed += len(means)
        level = int(sum(means) / max(1, len(means))) + self._offset
        return Reply(text=f"ANSWER: {legal[level % len(legal)]}" if legal else "{}", finish_reason="stop")

    def frames(self) -> FrameWork:
        return FrameWork(processed=self._processed)


class Halting:
    """A simulated reader that knows a `share` of the answers, and else says that it cannot tell."""

    def __init__(self, truth: AnswerKey, share: float) -> None:
        self._truth, self._share = truth, share

    def say(self, ask: Ask) -> str:
        answer = self._truth.answers[str(ask.qa_id)]
        if ask.answer_type == "report":
            return answer[0]
        if crc32(ask.request_key.encode()) / 2**32 >= self._share:
            return "I cannot tell."
        letters = letters_of(ask.option_keys)
        return f"ANSWER: {', '.join(sorted(letters[ask.option_keys.index(key)] for key in answer))}"


class Length:
    """A report metric: how close the number of words is to that of the reference."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        lengths = [(len(reference.split()), len(text.split())) for reference, text in pairs]
        return [min(pair) / max(pair) if max(pair) else 1.0 for pair in lengths]


def ward() -> Mapping[str, object]:
    """A layout of archives: one folder a patient, with a file of short-axis cine."""
    return {
        "title": "The archive of a ward",
        "files": [{"files": "{subject}/short_axis.nii.gz", "image": "cine_sax"}],
    }
