"""Chains: requests in stages, where later prompts contain the replies to earlier ones.

The plan declares a chain, with a mark in place of each value not known yet. The request of a stage and its
key follow from the declaration and the earlier replies alone, so the stored completions decide how far a
chain is; no other state is kept. There are three kinds: `Steps`, fixed except
the replies; `Choice`: its frames depend on the replies; and `Samples`, independent replies to one question.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cardiolens.base.digest import digest_of
from cardiolens.base.sanitize import one_line
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.protocol.tasks.legal import FREE, Constraint, Naming
from cardiolens.storage.schemas import FRAME

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # Unicode noncharacters, which occur in no ordinary text
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")

# Numbers of the marks in the prompts of a Choice, in the order of the values that replace them.
REQUEST_NUMBER, N_SEEN, N_LEFT, REFUSALS, N_SHOWN = range(5)

SAMPLED = "samples"  # finish reason of a completion whose text holds several replies

_MAX_QUOTED = 5  # refused names that are quoted to the reader
_MAX_CHARACTERS = 60  # characters of such a name
_NAME_LIST = re.compile(r'\{\s*"frames"\s*:\s*\[[^\[\]{}]*\]\s*\}')


class FrameRef(NamedTuple):
    """A frame of a study by its canonical index."""

    volume_id: str
    idx: int


class Stage(NamedTuple):
    """The request of one stage; as planned, its prompt has marks in place of earlier replies."""

    prompt: str
    max_tokens: int
    key: str
    seed: int | None = None  # of a sample; None: the model's
    temperature: float | None = None  # of a sample; None: the model's
    frames: tuple[FrameRef, ...] | None = None  # None: those of the chain's row in `requests`
    constraint: Constraint | None = None  # None: the one of the chain's row, for its answer

    @property
    def asks_for_frames(self) -> bool:
        """Whether the reply names frames: other stages with frames of their own are for the answer."""
        return self.frames is not None and self.constraint is not None


def mark(number: int) -> str:
    """The mark that stands for the value of a number, such as the reply of a stage."""
    return f"{_OPEN}{number}{_CLOSE}"


def fill(text: str, values: Sequence[str]) -> str:
    """Replace the marks of a text by values, which must contain no mark and no frame character."""
    return _MARK.sub(lambda match: values[int(match[1])], text)


def without_marks(text: str) -> str:
    """Remove the characters of marks and frames from untrusted text."""
    return text.replace(FRAME, "").replace(_OPEN, "").replace(_CLOSE, "")


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages known as planned, which all show the same frames."""

    stages: tuple[Stage, ...]

    @property
    def most_stages(self) -> int:
        return len(self.stages)

    @property
    def declared(self) -> tuple[str, ...]:
        """What decides its last reply, for its request key."""
        return tuple(stage.key for stage in self.stages)


class Steps(Stages):
    """A chain of stages that are asked in turn, the later ones with the replies to the earlier."""

    __slots__ = ()

    def next_request(self, replies: Sequence[str]) -> Stage | None:
        """The next request, with equal keys for chains that ask the same; None at the end of the chain."""
        if len(replies) == len(self.stages):
            return None
        stage, quoted = self.stages[len(replies)], [without_marks(reply) for reply in replies]
        return stage._replace(
            prompt=fill(stage.prompt, quoted),
            key=digest_of([stage.key, *quoted]) if quoted else stage.key,
            constraint=None if stage is self.stages[-1] else FREE,
        )


class Samples(Stages):
    """Several replies to one request, each drawn with a seed of its own; none waits for another."""

    __slots__ = ()


class Sample(NamedTuple):
    """One of several replies."""

    text: str
    finish_reason: str
    status: str  # ok or refused

    @property
    def refused(self) -> bool:
        return self.status == "refused"

    @property
    def cut(self) -> bool:
        return self.finish_reason == "length"


def samples_to_lines(samples: Iterable[Sample]) -> str:
    """Format replies as JSON Lines, in the order of their seeds."""
    return "\n".join(json.dumps(sample._asdict(), ensure_ascii=False) for sample in samples)


def samples_of(text: str) -> tuple[Sample, ...]:
    """Parse the replies in a text; empty if it has another format, since a server may return anything."""
    try:
        samples = tuple(Sample(**parse_json(line)) for line in text.split("\n"))
    except (ValueError, TypeError):
        return ()
    return samples if all(isinstance(field, str) for sample in samples for field in sample) else ()


class OfferedFrame(NamedTuple):
    """A frame on offer, and its caption when it is shown."""

    name: str
    volume_id: str
    idx: int
    caption: str


@dataclass(frozen=True)
class Offer:
    """The frames on offer, shared by many questions on a study."""

    key: str  # a digest of all that the frames are
    frames: tuple[OfferedFrame, ...]  # in the order in which they are shown

    @cached_property
    def places(self) -> dict[str, int]:
        return {_plain(frame.name): place for place, frame in enumerate(self.frames)}


class FrameHistory(NamedTuple):
    """The frames that a reader has requested so far."""

    places: tuple[int, ...] = ()  # places in the offer, as asked for
    not_shown: tuple[int, ...] = ()  # by request: number of refusals
    refusals: str = ""  # of the last request, with reasons
    ready: bool = False  # no more requests: the question comes next


@dataclass(frozen=True, slots=True)
class Choice:
    """A planned chain: its offer, and its prompts with marks."""

    offer: Offer
    budget: int
    rounds: int
    first: str
    further: str
    answer_one: str
    answer_many: str
    ask_max_tokens: int
    max_tokens: int
    bound: bool  # decoding enforces legal names
    stage_key: str

    @property
    def most_stages(self) -> int:
        return self.rounds + 1

    @property
    def opening(self) -> str:
        """The prompt of the first request."""
        return self._fill(self.first, FrameHistory())

    @property
    def declared(self) -> tuple[str, ...]:
        """What decides its last reply, for its request key."""
        texts = self.first, self.further, self.answer_one, self.answer_many
        return (self.stage_key, *texts, str(self.budget), str(self.rounds), str(self.bound))

    @property
    def most_frames(self) -> int:
        """The smaller of the budget and the size of the offer."""
        return min(self.budget, len(self.offer.frames))

    def next_request(self, replies: Sequence[str]) -> Stage | None:
        """The next request; None at the end of the chain."""
        history = self.after(replies)
        asked = len(history.not_shown)
        if history.ready and len(replies) == asked:
            ending = self.answer_one if len(history.places) == 1 else self.answer_many
            return self._stage(history, ending, self.max_tokens, None)
        if history.ready or asked == self.rounds:
            return None
        ending = self.further if history.places else self.first
        return self._stage(history, ending, self.ask_max_tokens, self._constraint(history))

    def failure(self, replies: Sequence[str]) -> str | None:
        """Why a chain at its end has no answer: no request for frames was legal."""
        history = self.after(replies)
        if history.places:
            return None
        asked = len(history.not_shown)
        return f"asked for no frame that there is in {asked} requests; {history.refusals}".rstrip("; ")

    def after(self, replies: Sequence[str]) -> FrameHistory:
        """Parse the frame requests in these replies; replies after the last request are ignored."""
        history = FrameHistory()
        for reply in replies[: self.rounds]:
            if not history.ready:
                history = self._with(history, reply)
        return history

    def _with(self, history: FrameHistory, reply: str) -> FrameHistory:
        names = _names_in(reply)
        places = list(history.places)
        refusals = [] if names is not None else ["the reply was no list of names"]
        for name in names or ():
            place = self.offer.places.get(_plain(name))
            if place is None:
                refusals.append(f"{_quote(name)} is no frame on offer")
            elif place in places:
                refusals.append(f"{_quote(name)} is shown already")
            elif len(places) == self.budget:
                refusals.append(f"{_quote(name)} is beyond the {self.budget} frames")
            else:
                places.append(place)
        if not places and names == ():
            refusals.append("the list was empty")
        not_shown = (*history.not_shown, len(refusals))
        is_last = len(places) == self.most_frames or names == () or len(not_shown) == self.rounds
        suffix = f"; and {len(refusals) - _MAX_QUOTED} more" if len(refusals) > _MAX_QUOTED else ""
        note = "; ".join(refusals[:_MAX_QUOTED]) + suffix
        return FrameHistory(tuple(places), not_shown, note, ready=bool(places) and is_last)

    def _fill(self, text: str, history: FrameHistory) -> str:
        number, n_shown = len(history.not_shown) + 1, len(history.places)
        refusal = f"Not shown of your last request: {history.refusals}.\n" if history.refusals else ""
        return fill(text, [str(number), str(n_shown), str(self.most_frames - n_shown), refusal, str(n_shown)])

    def _stage(
        self, history: FrameHistory, ending: str, max_tokens: int, constraint: Constraint | None
    ) -> Stage:
        """A request for frames with its constraint, or the answer; its key holds the constraint."""
        shown = [self.offer.frames[place] for place in sorted(history.places)]
        frames = tuple(FrameRef(frame.volume_id, frame.idx) for frame in shown)
        block = "".join(
            f"Frame {number}:{frame.caption}\n{FRAME}\n" for number, frame in enumerate(shown, start=1)
        )
        prompt = f"{block}{self._fill(ending, history)}"
        bound = [] if constraint is None else [constraint.text]
        key = digest_of([self.stage_key, prompt, max_tokens, *map(list, frames), *bound])
        return Stage(prompt, max_tokens, key, frames=frames, constraint=constraint)

    def _constraint(self, history: FrameHistory) -> Constraint:
        """The names of the frames not yet shown; at least one must be named before any is shown."""
        if not self.bound:
            return FREE
        names = [frame.name for place, frame in enumerate(self.offer.frames) if place not in history.places]
        limit = self.most_frames - len(history.places)
        return Constraint(naming=Naming(tuple(names), least=0 if history.places else 1, most=limit))


Chain = Steps | Choice | Samples


def _names_in(reply: str) -> tuple[str, ...] | None:
    """The names in the last list of a reply; None where it has no such list."""
    for text in reversed(_NAME_LIST.findall(reply)):
        try:
            return tuple(map(str, json.loads(text)["frames"]))
        except ValueError:
            continue
    return None


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())


def _quote(name: str) -> str:
    return f"'{one_line(without_marks(name), _MAX_CHARACTERS)}'"
