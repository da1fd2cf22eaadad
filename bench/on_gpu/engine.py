"""The product's engine, which notes when its parts were done and drops options that this vLLM lacks."""

import dataclasses
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep_factors import Arm
from cardiolens.inference.engine.ask import Ask, Pictures, Reply
from cardiolens.inference.engine.startup import known_options, use_all_threads
from cardiolens.inference.engine.vllm_engine import VllmEngine
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.placement.placement import Deployment
from cardiolens.protocol.tasks.legal import Constraint
from cardiolens.storage.schemas import FRAME

_STREAMS = tuple(Path(f"/proc/self/fd/{fd}") for fd in (1, 2))
_NUMBER = r"([\d.]+)"
_PARTS = {
    "weights": re.compile(rf"(?:Model loading took .* and|Initializing model took) {_NUMBER} seconds"),
    "compile": re.compile(rf"torch\.compile (?:takes|took) {_NUMBER} s in total"),
    "CUDA graphs": re.compile(rf"Graph capturing finished in {_NUMBER} secs"),
    "profile, cache, warm-up": re.compile(rf"init engine \(profile[^)]*\) took {_NUMBER} s"),
}
"""What vLLM writes of its start; the last contains the two before it."""

WARM = Ask(
    request_key="warm",
    system="You see one frame.",
    text=f"Frame 1: cine\n{FRAME}\nIs it black?\nA. Yes\nB. No",
    frame_keys=("warm",),
    answer_type="single",
    option_keys=("A", "B"),
    max_tokens=4,
    constraint=Constraint(("A", "B")),
)
"""Asked before anything is measured."""


def warm_frame(_: str) -> np.ndarray:
    return np.zeros((224, 224), np.uint8)


class Marks:
    """A file with one line of JSON for each moment that is noted, so that it can be read at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, mark: str, **more: object) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"mark": mark, "at": time.time(), **more}) + "\n")

    def read(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text().splitlines() if line.endswith("}")]


class MarkedEngine(VllmEngine):
    """One replica; every start and every answer is noted in a file."""

    def __init__(self, marks: Marks, *arguments: Any, **videos: bool) -> None:
        super().__init__(*arguments, **videos)
        self._marks = marks
        self._distinct: set[str] = set()
        self._asked = False
        marks.note("actor")

    async def start(self) -> None:
        if self._deployment.gpus:
            use_all_threads()  # before torch is imported
        import vllm.v1.engine.async_llm  # noqa: F401 - its import is a part of the start

        self._marks.note("vLLM imported")
        before = written()
        await super().start()
        assert self._engine is not None
        settings = settings_of(self._engine.vllm_config)
        self._marks.note("engine", parts=parts_of(written_since(before)), settings=settings)
        await super().answer(WARM, warm_frame)
        self._distinct.update(WARM.frame_keys)
        self._marks.note("first answer")

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        if not self._asked:
            self._asked = True
            self._marks.note("first ask")
        reply = await super().answer(ask, pictures)
        self._distinct.update(ask.frame_keys)
        self._marks.note(
            "answer",
            prompt=reply.prompt_tokens,
            cached=reply.cached_tokens,
            output=reply.output_tokens,
            encoded=self.frames().encoded,
            distinct=len(self._distinct),
        )
        return reply

    def _engine_options(self) -> dict[str, Any]:
        return fitting(super()._engine_options(), self._marks)

    async def _warm_up(self) -> None:
        """Both engines of the bench are warmed alike, by a request of the bench."""

    def _stat_logger(self) -> Any:
        from vllm.v1.metrics.stats import SchedulerStats

        if "iteration_details" in {field.name for field in dataclasses.fields(SchedulerStats)}:
            return super()._stat_logger()
        self._marks.note("dropped", names=["the count of encoder runs"])
        return _no_counter()


def _no_counter() -> Any:
    from vllm.v1.metrics.loggers import PrometheusStatLogger

    class NoCounter(PrometheusStatLogger):
        def __init__(self, **_: object) -> None:
            pass

        def record(self, *_: object, **__: object) -> None:
            pass

        def log_engine_initialized(self) -> None:
            pass

    return NoCounter


def make_marked(
    marks: Marks,
    model: ModelSpec,
    identity: Identity,
    deployment: Deployment,
    *,
    arms: Mapping[str, Arm],
    max_frames: int,
    **_: object,
) -> MarkedEngine:
    """Take the place of the function that makes the product's engine in its actor."""
    shows_videos = any(arm.prompt.cine == "video" for arm in arms.values())
    return MarkedEngine(marks, model, identity, max_frames, deployment, shows_videos=shows_videos)


def fitting(options: Mapping[str, Any], marks: Marks) -> dict[str, Any]:
    """The options that the installed vLLM has; the others are named in a line and noted."""
    dropped = sorted(options.keys() - known_options())
    for name in dropped:
        print(f"dropped: this vLLM has no option {name} (it would be {options[name]!r})", flush=True)
    if dropped:
        marks.note("dropped", names=dropped)
    return {name: value for name, value in options.items() if name not in dropped}


def settings_of(config: Any) -> dict[str, Any]:
    """Settings of a running engine in which a comparison must agree."""
    places = {
        "scheduler_config": (
            "max_num_batched_tokens",
            "max_num_seqs",
            "async_scheduling",
            "enable_chunked_prefill",
            "encoder_cache_size",
            "policy",
        ),
        "cache_config": ("block_size", "enable_prefix_caching", "gpu_memory_utilization"),
        "model_config": ("max_model_len", "dtype"),
        "parallel_config": ("tensor_parallel_size",),
    }
    return {
        name: value if isinstance(value, int | float | bool | None) else str(value)
        for place, names in places.items()
        for name in names
        if (value := getattr(getattr(config, place), name, None)) is not None
    }


def written() -> tuple[int, ...]:
    """Sizes of what this process and its children wrote so far; 0 where that is no file."""
    return tuple(stream.stat().st_size if stream.is_file() else 0 for stream in _STREAMS)


def written_since(before: tuple[int, ...]) -> str:
    texts = []
    for stream, start in zip(_STREAMS, before, strict=True):
        if stream.is_file():
            with stream.open("rb") as file:
                file.seek(start)
                texts.append(file.read().decode(errors="replace"))
    return "\n".join(texts)


def parts_of(log: str) -> dict[str, float]:
    """Seconds of the parts of vLLM's start, as it writes them; the slowest of its processes counts."""
    found = {name: pattern.findall(log) for name, pattern in _PARTS.items()}
    return {name: max(map(float, seconds)) for name, seconds in found.items() if seconds}
