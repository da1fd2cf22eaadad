"""Requests: the question as planned, the form of its reply, its key, and the table of requests."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from cardiolens.base.digest import DIGEST_BYTES, digest_of
from cardiolens.config.model import ModelSpec, Sampling
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.protocol.dialogue.chain import Chain, Choice
from cardiolens.protocol.prompts.case_prompts import CaseText
from cardiolens.protocol.prompts.question import AskedQuestion, asked_of
from cardiolens.protocol.prompts.template import Closing
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.storage.schemas import REQUESTS

if TYPE_CHECKING:
    from hashlib import blake2b as Hash  # noqa: N812


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """A question as the plan sees it: words, route and study, and an answer only if it is an example."""

    qa_id: str
    study_id: str
    asked: AskedQuestion
    subtask: Subtask
    donor: str | None = None  # the study whose frames are shown under control other_patient
    case: CaseText | None = None  # text that prompts may include, for a case of images and text
    examples: tuple["PlannedQuestion", ...] = field(default=(), hash=False)  # that may be shown before it
    answer: tuple[str, ...] = ()  # original option keys of an example, the only answers that a plan holds

    @staticmethod
    def of(row: Mapping[str, Any], catalogue: Catalogue) -> "PlannedQuestion":
        """Return the question of a row of `questions`, without its answer."""
        subtask = catalogue[row["subtask"]]
        options = tuple((option["key"], option["text"]) for option in row["options"])
        asked = asked_of(subtask, catalogue, row["question"], options)
        return PlannedQuestion(row["qa_id"], row["study_id"], asked, subtask)

    @property
    def further_studies(self) -> Iterator[str]:
        """The other studies that lend frames to the question."""
        if self.donor is not None:
            yield self.donor
        yield from (example.study_id for example in self.examples)


class ShownExample(NamedTuple):
    """A solved question in a prompt, with the frames that it shows of another patient's study."""

    qa_id: str
    study_id: str
    frames: tuple[Frame, ...]


_REPORT_TOKENS = 2048  # limit of a reply that is a report
_STEP_TOKENS = 512  # limit of the reply to a step


class ReplyForm:
    """The form of the replies of one model in a sweep."""

    def __init__(self, spec: SweepSpec, model: ModelSpec) -> None:
        self._asked_for = spec.answer_format
        self._limits = model.max_tokens
        self.closing: Closing = "json" if spec.answer_format == "json" else "letters"

    def format_of(self, question: AskedQuestion, prompt: PromptSpec) -> str:
        """Return the form of the reply: only legal letters if direct, a line of them if reasoned."""
        if question.answer_type == "report":
            return "json"
        if question.answer_type in ("number", "ranking"):
            return self.closing
        if self._asked_for != "choice" or prompt.style == "standard":
            return self._asked_for
        return "first_line" if question.letters_first else "last_line"

    def max_tokens(self, question: AskedQuestion, prompt: PromptSpec) -> int:
        """Return the token limit of the reply: the model's for this prompt, else at least its style's.

        A model that thinks declares what a style needs (`standard: 4096`), or any other prompt
        of the style would cut its replies. Videos have the limit of the frames that they are compared with.
        """
        if question.answer_type == "report":
            return self._limits.get("report", _REPORT_TOKENS)
        if prompt.name in self._limits:
            return self._limits[prompt.name]
        by_style = self._by_style(prompt)
        return by_style if by_style and prompt.cine == "video" else max(by_style, prompt.max_tokens)

    def step_max_tokens(self, prompt: PromptSpec) -> int:
        """Return the token limit of the reply to a step, the model's for steps, else at least its style's."""
        return self._limits.get("step", max(self._by_style(prompt), _STEP_TOKENS))

    def _by_style(self, prompt: PromptSpec) -> int:
        """Token limit that the model declares for prompts of this style; 0 if it declares none."""
        return self._limits.get("standard" if prompt.style == "standard" else "reasoning", 0)


def hash_of(*texts: str, after: "Hash | None" = None) -> "Hash":
    """Hash texts, or go on from a hash, which stays as it is; other texts never have the same hash."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES) if after is None else after.copy()
    encoded = [text.encode() for text in texts]
    state.update(b"".join([piece for text in encoded for piece in (len(text).to_bytes(8, "little"), text)]))
    return state


def hash_model(model_key: str, sampling: Sampling) -> "Hash":
    """Hash the model and its sampling; frames and question come after them."""
    return hash_of(model_key, digest_of(sampling.fields))


def request_key(state: "Hash", question_text: str, *decoding: str) -> str:
    """Return the key of one request, 32 hex digits; `state` hashes model, system message and frames.

    `decoding` is everything else that decides the answer: legal replies, token limit, replicate; also the arm
    and the question if the reader looks at the truth or samples without a seed.
    """
    return hash_of(question_text, *decoding, after=state).hexdigest()


@dataclass(frozen=True, slots=True)
class Request:
    """One question under one arm; all but chain and examples are columns of REQUESTS, documented there."""

    arm_id: str
    qa_id: str
    study_id: str
    frames_study_id: str | None
    subtask: str
    frames: tuple[Frame, ...]
    system: str
    prompt: str
    template: str
    answer_format: str
    answer_type: str
    option_keys: tuple[str, ...]
    exclusive: tuple[str, ...]
    max_tokens: int
    stage: int
    replicate: int
    flags: tuple[str, ...]
    status: str
    predicted_tokens: int | None
    request_key: str
    chain: Chain | None = None  # asked in place of the one request
    examples: tuple[ShownExample, ...] = ()  # before its own frames

    @property
    def most_frames(self) -> int:
        """The frames that it shows, with those of examples, or the most that it lets a reader choose."""
        n_shown = len(self.frames) + sum(len(example.frames) for example in self.examples)
        return max(n_shown, self.chain.most_frames if isinstance(self.chain, Choice) else 0)


def table_of(requests: Sequence[Request]) -> pa.Table:
    """Return requests as table REQUESTS; requests share lists of frames, so each is converted once."""
    numbers: dict[tuple[Frame, ...], int] = {}
    rows = [numbers.setdefault(request.frames, len(numbers)) for request in requests]
    lists = [[{"volume_id": frame.volume_id, "idx": frame.idx} for frame in frames] for frames in numbers]
    arrays = [
        pa.array(lists, column.type).take(pa.array(rows, pa.int32()))
        if column.name == "frames"
        else pa.array(map(attrgetter(column.name), requests), column.type)
        for column in REQUESTS
    ]
    return pa.Table.from_arrays(arrays, schema=REQUESTS)
