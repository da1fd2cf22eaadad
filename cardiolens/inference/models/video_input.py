"""What a processor is told of a video besides its frames, and what it must make of them.

Families place a video in time by the seconds of its frames. Studies do not say how long a phase lasts, and
the phases shown need not be evenly spaced. So every video has the rate at which these families sample
videos, and the prompt names its phases.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cardiolens.base.errors import InputError
from cardiolens.config.model import VIDEO_ARCHITECTURES

FRAMES_PER_SECOND = 2.0  # the default of Qwen's processors


class VideoTokens(NamedTuple):
    """The tokens of a video in a prompt."""

    all: int  # with the marks around it, and its times where the family writes them
    placeholders: int  # which the encoder's output replaces


class Grid(NamedTuple):
    """What a processor makes of a video or a frame: patches in time, height and width."""

    time: int
    height: int
    width: int


def metadata_of(n_frames: int) -> dict[str, Any]:
    """Return the metadata of a video from which no frame is left out, in the words of transformers."""
    return {
        "total_num_frames": n_frames,
        "fps": FRAMES_PER_SECOND,
        "duration": n_frames / FRAMES_PER_SECOND,
        "frames_indices": list(range(n_frames)),
        "video_backend": "cardiolens",
    }


def check_takes_video(folder: Path, architectures: Sequence[str]) -> None:
    """InputError unless videos are sent to models of this architecture."""
    if not set(architectures) & set(VIDEO_ARCHITECTURES):
        raise InputError(
            f"{folder}: is of {', '.join(architectures) or 'no architecture'}, and videos are sent to "
            f"{', '.join(VIDEO_ARCHITECTURES)}; leave out takes_video and the prompts with cine: video"
        )


def check_frames_kept(folder: Path, video: Grid, frame: Grid, n_frames: int, merged_in_time: int) -> None:
    """InputError if a processor drops frames of a video, or scales them otherwise than frames alone.

    `merged_in_time` frames become one patch; the last frame is repeated to fill the last patch.
    """
    expected = Grid(-(-n_frames // merged_in_time), frame.height, frame.width)
    if video != expected:
        raise InputError(
            f"{folder}: of a video of {n_frames} frames its processor makes {video.time} x {video.height} x "
            f"{video.width} patches in place of {expected.time} x {expected.height} x {expected.width}, so "
            "that a model would see other pixels than in the frames; set the limits of its videos in "
            "engine_options.mm_processor_kwargs, choose a smaller long_side or budget, or leave out the "
            "prompts with cine: video"
        )
