"""A study as the plan sees it: its frames, and what the prompts of its requests share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cardiolens.inference.plan.shown_examples import ShownExample
from cardiolens.protocol.dialogue.frame_requests import Offer
from cardiolens.protocol.select.feature_store import Features
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.study.shards import FrameDigest
from cardiolens.study.structure import StudyStructure

if TYPE_CHECKING:
    from hashlib import blake2b

Picture = tuple[str, tuple[int, int]]  # frame key; height and width as rendered


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """The part of a prompt that all requests with the same list of frames share."""

    system: str
    text: str
    state: "blake2b"  # hash of the request key, up to the question
    sizes: tuple[tuple[int, int], ...]  # (height, width) of the frames as rendered
    rest: str = ""  # the text after the last frame
    counted: tuple[int, str] | None = None  # tokens up to the last frame; template text after the question
    n_videos: int = 0


@dataclass(frozen=True, slots=True)
class StudyFrames:
    """The frames of a study: structure, digests, and features by encoder if a selector needs them."""

    structure: StudyStructure
    digests: Mapping[tuple[str, int], FrameDigest]
    features: Features


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """Data shared by all requests that show one study."""

    structure: StudyStructure
    pictures: Mapping[tuple[str, int], Picture]  # by volume_id, idx
    features: Features
    digests: Mapping[tuple[str, int], FrameDigest]
    shown: dict[object, FrameBlock] = field(default_factory=dict)
    offers: dict[tuple[Frame, ...], Offer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """The frames that one request shows, and their study."""

    study_id: str | None  # None for a request that shows no frames
    study: PlannedStudy
    selection: Selection
    as_video: bool = False  # whether phases of a slice are shown as a video
    told: tuple[Frame, ...] = ()  # frames shown by their captions alone


class ExampleBlock(NamedTuple):
    """Solved examples of other patients: the text before a question's own frames, and their frames."""

    text: str = ""
    pictures: tuple[Picture, ...] = ()
    examples: tuple[ShownExample, ...] = ()


NO_EXAMPLES = ExampleBlock()  # of a prompt without examples
