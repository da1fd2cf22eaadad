"""Chat format of a model: render prompt strings and count their tokens without running the model."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from pydantic import JsonValue

from cardiolens.base.errors import InputError
from cardiolens.config.model import VIDEO_ARCHITECTURES, ModelSpec
from cardiolens.inference.models.chat_template import IMAGE, VIDEO, ChatTemplate
from cardiolens.inference.models.token_counts import EstimatedTokens
from cardiolens.protocol.prompts.frames import by_place, split_at_places
from cardiolens.storage.schemas import FRAME

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
            f"{', '.join(VIDEO_ARCHITECTURES)}; leave out the prompts with cine: video"
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


_WITHOUT_SPECIAL = frozenset({"Gemma4ForConditionalGeneration"})  # vLLM adds no special tokens to its prompts
_HERE = "\ue000"  # private-use characters that mark positions of text
_THERE = "\ue001"
_ELSEWHERE = ("device",)  # options for the engine's processor only; the plan's processor runs on the CPU


_PLAIN = ModelSpec(name="plain", source="a folder")  # without options


class Chat:
    """Chat template, tokenizer and image processor of a model folder, with the options that vLLM gets."""

    def __init__(self, folder: Path, model: ModelSpec = _PLAIN) -> None:
        from transformers import AutoProcessor

        self._folder = folder
        options = _mapping(model, "mm_processor_kwargs")
        self._options = {name: value for name, value in options.items() if name not in _ELSEWHERE}
        try:
            self._processor: Any = AutoProcessor.from_pretrained(
                folder, trust_remote_code=model.trust_remote_code, **self._options
            )
        except (OSError, ValueError, ImportError, TypeError, AttributeError, LookupError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"{folder}: its processor cannot be loaded ({reason}); is it a language model?"
            ) from error
        # The processor of a language model without images is its tokenizer.
        self._tokenizer: Any = getattr(self._processor, "tokenizer", self._processor)
        if not any(getattr(one, "chat_template", None) for one in (self._processor, self._tokenizer)):
            raise InputError(
                f"{folder}: has no chat template; add a chat_template.jinja to the model's folder"
            )
        overrides = _mapping(model, "hf_overrides")
        self._template = ChatTemplate(folder, self._processor, model.template_options, overrides)
        self._first, self._added = self._find_first()
        self._head = lru_cache(maxsize=4096)(self._render_head)
        self._shown = lru_cache(maxsize=4096)(self._count_shown)
        self._length = lru_cache(maxsize=1 << 18)(self._count_text)  # captions and questions recur
        self.image_tokens = lru_cache(maxsize=None)(self._count_image)
        self._video_tokens = lru_cache(maxsize=None)(self._count_video)

    def prompt(self, system: str, text: str) -> str:
        """Render the prompt string for the engine, with the model's image placeholder for each frame.

        Leaves out a first token that the engine's tokenizer adds itself, or the token would appear twice.
        """
        if FRAME not in text:
            rendered = self._template.render(system, [text])
        else:
            frames, _, question = text.rpartition(FRAME)
            head, tail = self._head(system, frames)
            rendered = f"{head}{self._template.asked(question)}{tail}"
        return rendered.removeprefix(self._first)

    def video_placeholders(self, text: str, sizes: tuple[tuple[int, int], ...]) -> int:
        """Count the placeholder tokens that the engine must make of the videos of a message."""
        videos = (frames for frames in by_place(text, sizes) if len(frames) > 1)
        return sum(self._video_tokens(frames[0], len(frames)).placeholders for frames in videos)

    @property
    def video_token_id(self) -> int:
        """The token that stands for a piece of a video in a prompt."""
        return int(self._processor.video_token_id)

    def count(self, system: str, text: str, sizes: tuple[tuple[int, int], ...]) -> int:
        """Count the prompt tokens of a message as the engine does, with (height, width) of its frames."""
        if FRAME not in text:
            return self._added + self._length(self._template.render(system, [text]))
        frames, _, question = text.rpartition(FRAME)
        ending = f"{self._template.asked(question)}{self._head(system, frames)[1]}"
        return self._shown(system, frames, sizes) + self._length(ending)

    def _render_head(self, system: str, frames: str) -> tuple[str, str]:
        """Render the text before and after the question; `frames` ends before the last placeholder."""
        if not self._template.takes_images:
            raise InputError(
                f"{self._folder}: is a language model without images, and its prompts show frames; name a "
                "vision-language model, or the control none"
            )
        pieces = [
            piece if isinstance(piece, str) else IMAGE if piece == 1 else VIDEO
            for piece in split_at_places(f"{frames}{FRAME}")
        ]
        if VIDEO in pieces:
            check_takes_video(self._folder, self._template.architectures)
            self._template.video_marks(1)
        return self._template.around(system, pieces)

    def _count_shown(self, system: str, frames: str, sizes: tuple[tuple[int, int], ...]) -> int:
        """Count the tokens up to the last frame; `frames` ends before the last placeholder."""
        places = by_place(f"{frames}{FRAME}", sizes)
        n_videos = sum(len(place) > 1 for place in places)
        images = iter(self._template.marks(len(places) - n_videos))
        videos = iter(self._template.video_marks(n_videos) if n_videos else ())
        texts, rest = list[str](), self._head(system, frames)[0]
        for place in places:
            text, _, rest = rest.partition(next(images if len(place) == 1 else videos))
            texts += [text] if text else []
        n_shown = sum(
            self.image_tokens(place[0]) if len(place) == 1 else self._video_tokens(place[0], len(place)).all
            for place in places
        )
        return self._added + sum(map(self._length, texts)) + n_shown

    def _find_first(self) -> tuple[str, int]:
        """Return the first token, if template and tokenizer both add it, and the number of tokens that only
        the tokenizer adds.
        """
        if not _WITHOUT_SPECIAL.isdisjoint(self._template.architectures):
            return "", 0
        start = self._template.render("", [_HERE])
        bare, rendered_ids = (
            self._tokenizer(start, add_special_tokens=add)["input_ids"] for add in (False, True)
        )
        if rendered_ids[:1] == bare[:1] == rendered_ids[1:2]:
            return str(self._tokenizer.bos_token), len(rendered_ids) - len(bare) - 1
        return "", len(rendered_ids) - len(bare)

    def _count_text(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _count_image(self, size: tuple[int, int]) -> int:
        """Count the tokens that the model's processor makes of one (height, width) frame, with wrappers."""
        try:
            image_inputs = self._processor(
                text=[f"{_HERE}{self._template.marks(1)[0]}{_THERE}"],
                images=[np.zeros((*size, 3), dtype=np.uint8)],
                add_special_tokens=False,
                **self._options,
            )["input_ids"][0]
        except (TypeError, AttributeError):  # some published processors accept one string and no options
            return self._processed(size, 2) - self._processed(size, 1) - self._length(_HERE)
        return len(image_inputs) - self._length(_HERE) - self._length(_THERE)

    def _count_video(self, size: tuple[int, int], n_frames: int) -> VideoTokens:
        """Count the tokens of a video of frames of one (height, width). InputError if any would be lost."""
        video, frame = np.zeros((n_frames, *size, 3), dtype=np.uint8), np.zeros((*size, 3), dtype=np.uint8)
        options = {"video_metadata": [metadata_of(n_frames)], "do_sample_frames": False, **self._options}
        marks = [
            f"{_HERE}{mark}{_THERE}"
            for mark in (self._template.video_marks(1)[0], self._template.marks(1)[0])
        ]
        inputs = self._processor(text=marks[:1], videos=[video], add_special_tokens=False, **options)
        alone = self._processor(text=marks[1:], images=[frame], add_special_tokens=False, **self._options)
        check_frames_kept(
            self._folder,
            Grid(*map(int, inputs["video_grid_thw"][0])),
            Grid(*map(int, alone["image_grid_thw"][0])),
            n_frames,
            self._processor.video_processor.temporal_patch_size,
        )
        token_ids = list(map(int, inputs["input_ids"][0]))
        n_tokens = len(token_ids) - self._length(_HERE) - self._length(_THERE)
        return VideoTokens(n_tokens, token_ids.count(self.video_token_id))

    def _processed(self, size: tuple[int, int], frames: int) -> int:
        """Count the tokens that the processor makes of a number of frames, each followed by a mark."""
        text = "".join(f"{mark}{_HERE}" for mark in self._template.marks(frames))
        images = [Image.new("RGB", size[::-1])] * frames
        return len(np.ravel(self._processor(text=text, images=images)["input_ids"]))


TokenCounter = Chat | EstimatedTokens
"""Counts the tokens of prompts; sizes are the (height, width) of rendered frames."""


def _mapping(model: ModelSpec, option: str) -> Mapping[str, JsonValue]:
    value = model.engine_options.get(option) or {}
    if not isinstance(value, Mapping):
        raise InputError(
            f"model {model.name}: engine_options.{option} is {value!r}; expected names and values in braces"
        )
    return value
