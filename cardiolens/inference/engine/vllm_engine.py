"""vLLM as an engine; together with `startup` the only module that imports vLLM."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from cardiolens.base.digest import digest_of
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine import decoding, engine_memory, startup
from cardiolens.inference.engine.ask import (
    Ask,
    Engine,
    EngineDeadError,
    ErrorKind,
    FrameCache,
    FrameWork,
    Numerics,
    Pictures,
    Reply,
    RequestError,
)
from cardiolens.inference.models.chat import Chat, metadata_of
from cardiolens.inference.models.identity import Identity, installed_engine, room_for
from cardiolens.inference.placement.placement import Deployment
from cardiolens.protocol.prompts.frames import by_place, count_videos
from cardiolens.protocol.tasks.legal import FREE, Constraint
from cardiolens.storage.schemas import FRAME

if TYPE_CHECKING:
    from vllm import CompletionOutput, RequestOutput, SamplingParams
    from vllm.config import VllmConfig
    from vllm.lora.request import LoRARequest
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.metrics.loggers import PrometheusStatLogger
    from vllm.v1.metrics.stats import MultiModalCacheStats, SchedulerStats

log = logging.getLogger(__name__)

_LARGE_GIB = 76.0  # a GPU that is sold with 80 GB reports between 76 and 80
_CUT_OFF = ("abort", "error")  # finish reasons of requests that vLLM gave up; the text is not an answer


def rgb_frames(most_bytes: int = 512 << 20) -> FrameCache[Image.Image]:
    """Return a cache of frames as vLLM takes them."""
    return FrameCache(
        lambda pixels: Image.fromarray(pixels).convert("RGB"),
        lambda image: 3 * image.width * image.height,
        most_bytes,
    )


class VllmEngine(Engine):
    """One replica: vLLM's asynchronous engine, with its core in a separate process."""

    def __init__(
        self,
        model: ModelSpec,
        identity: Identity,
        max_frames: int,
        deployment: Deployment,
        *,
        shows_videos: bool = False,
    ) -> None:
        assert identity.folder is not None, "a vllm model has files"
        self._model = model
        # An engine over several nodes reads the same path on all; a local copy may exist on one node only.
        self._folder = identity.folder
        self._adapter = identity.adapter
        self._deployment = deployment
        self._max_frames = max_frames  # per prompt
        self._max_videos = max_frames // 2 if shows_videos else 0  # per prompt, each of two frames or more
        self._engine: AsyncLLM | None = None
        self._written_at_start = startup.written_so_far()
        self._death = ""  # why the engine died; the same for all requests that were in flight
        self._tries = count()  # a request may be asked again after the engine died
        self._frames = FrameWork()
        self._numerics = Numerics()
        self._images = rgb_frames()

    async def start(self) -> None:
        """Load the model in a thread, which takes minutes; the replica writes and listens meanwhile."""
        self.close()
        self._engine = await asyncio.to_thread(self._loaded)
        self._written_at_start, self._death = startup.written_so_far(), ""
        self._numerics = await self._read_numerics()
        await self._warm_up()

    def _loaded(self) -> "AsyncLLM":
        if self._deployment.gpus:
            startup.use_all_threads()  # before torch is imported
        _ = self._reasoning  # a parser that does not exist, too
        _ = self._chat  # a broken template or processor must fail the model, not every request
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        options = AsyncEngineArgs(**self._engine_options())

        if self._deployment.gpus and not self._deployment.spans_nodes:  # else its GPUs are of its workers
            engine_memory.wait_for_memory(self._deployment.utilization)
        written = startup.written_so_far()
        try:
            config = options.create_engine_config()
            self.tune(config)
            return AsyncLLM.from_vllm_config(  # in a thread: its tasks begin at the first request
                config,
                stat_loggers=[self._stat_logger()],
                enable_log_requests=options.enable_log_requests,
                disable_log_stats=options.disable_log_stats,
            )
        except RuntimeError as error:  # often says only that one of vLLM's processes failed
            raise RuntimeError(startup.with_remedy(startup.root_cause(written) or str(error))) from error

    def tune(self, config: "VllmConfig") -> None:
        """Give the encoder's cache room for the frames of a study, which is no option of vLLM."""
        gpus, share = self._deployment.gpus, self._deployment.utilization
        room = engine_memory.encoder_room(engine_memory.gpu_gib(), share) if gpus else None
        engine_memory.tune(config, room)

    async def _read_numerics(self) -> Numerics:
        """Ask the workers what decides the rounding of their answers; what they do not report is unknown."""
        assert self._engine is not None
        try:
            reports: list[tuple[str, list[str]]] = await self._engine.collective_rpc("report_numerics")
        except Exception as error:  # noqa: BLE001 - a worker may raise anything; answers do not depend on it
            log.warning("vLLM does not report its device and attention backend: %s", error)
            reports = []
        devices = sorted({device for device, _ in reports})
        backends = sorted({name for _, names in reports for name in names})
        return Numerics(
            engine=f"vllm {installed_engine()[1]}",
            device=" + ".join(devices) or None,
            attention_backend=" + ".join(backends) or None,
            tensor_parallel=self._deployment.tensor_parallel,
        )

    async def _warm_up(self) -> None:
        """Ask once with a black frame: processor, grammar and kernels are made at the first request.

        A model may refuse such a request and still answer others.
        """
        side = self._model.long_side
        keys = (f"warm-{side}",) if self._max_frames else ()
        letters = ("A", "B")
        ask = Ask("warm", "", f"{FRAME * len(keys)}?", keys, "single", letters, 1, Constraint(letters))
        frames = self._frames
        with suppress(RequestError):
            await self.answer(ask, lambda _: np.zeros((side, side), np.uint8))
        self._frames = frames

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        assert self._engine is not None, "the supervisor starts an engine before it asks"
        request_id = f"{ask.request_key}-{next(self._tries)}"
        final = None
        try:
            prompt = self._prompt(ask, pictures)
            outputs = self._engine.generate(
                prompt, self._sampling(ask), request_id, lora_request=self._lora_request
            )
            async for output in outputs:
                final = output
        except Exception as error:  # vLLM, processors and templates may raise anything
            failure = startup.failure_of(error, dead=self._engine.errored)
            if isinstance(failure, EngineDeadError):
                if not self._death:
                    cause = startup.root_cause(self._written_at_start) or startup.NO_CAUSE
                    self._death = startup.with_remedy(cause)
                failure = EngineDeadError(self._death)
            raise failure from error
        if final is None:
            raise RequestError(ErrorKind.NO_ANSWER, "vLLM ended the request without an output")
        if count_videos(ask.text):
            self._check_videos(final.prompt_token_ids or (), ask, pictures)
        return replace(_reply(final, ask, self._reasoning), numerics=self._numerics)

    def _check_videos(self, token_ids: Sequence[int], ask: Ask, pictures: Pictures) -> None:
        """RequestError unless vLLM made of the videos as many tokens as the plan's processor does."""
        sizes = tuple(tuple(pictures(key).shape[:2]) for key in ask.frame_keys)
        expected = self._chat.video_placeholders(ask.text, sizes)
        received = token_ids.count(self._chat.video_token_id)
        if received != expected:
            raise RequestError(
                ErrorKind.REJECTED,
                f"vLLM made {received} tokens of its videos, and all frames are {expected}: frames were left "
                "out or scaled; remove mm_processor_kwargs and video_pruning_rate from engine_options, or "
                "leave out the prompts with cine: video",
            )

    def frames(self) -> FrameWork:
        return self._frames

    def close(self) -> None:
        if self._engine is not None:
            self._engine.shutdown()
            self._engine = None

    @cached_property
    def _chat(self) -> Chat:
        return Chat(self._folder, self._model)

    @cached_property
    def _reasoning(self) -> decoding.ReasoningSplit | None:
        """What separates the reasoning of this model from its answers."""
        if not self._model.separates_reasoning:
            return None
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(
            self._folder, trust_remote_code=self._model.trust_remote_code
        )
        return decoding.ReasoningSplit.of(self._model, tokenizer)

    @cached_property
    def _lora_request(self) -> "LoRARequest | None":
        from vllm.lora.request import LoRARequest

        return None if self._adapter is None else LoRARequest("adapter", 1, str(self._adapter))

    def _engine_options(self) -> dict[str, Any]:
        on_cpu = installed_engine()[0] == "cpu"
        model = self._model
        options: dict[str, Any] = {
            "model": str(self._folder),
            "served_model_name": model.name,
            "dtype": model.dtype,
            "max_model_len": model.max_model_len,
            "max_num_seqs": model.at_once,
            "trust_remote_code": model.trust_remote_code,
            "tensor_parallel_size": self._deployment.tensor_parallel,
            "pipeline_parallel_size": self._deployment.pipeline_parallel,
            "limit_mm_per_prompt": {"image": self._max_frames, "video": self._video_limit()},
            "seed": 0,
            "enable_prefix_caching": True,
            "enable_logging_iteration_details": True,  # gives the encoder runs per step, for the counter
            "worker_extension_cls": "cardiolens.inference.engine.engine_memory.WorkerNumerics",
            "enforce_eager": on_cpu,  # compiling for CPU takes minutes and gains little
        }
        if on_cpu:
            options["kv_cache_memory_bytes"] = 4 * 2**30
        else:
            # With vLLM's default of 2,048, a prompt of images takes many steps and the encoder cache is tiny.
            options["max_num_batched_tokens"] = 16_384 if engine_memory.gpu_gib() >= _LARGE_GIB else 8_192
        if self._adapter is not None:
            options |= {"enable_lora": True, "max_lora_rank": room_for(self._adapter)}
        if self._deployment.spans_nodes:
            options["distributed_executor_backend"] = "ray"  # within one node, vLLM starts its own processes
        if model.separates_reasoning:
            options["reasoning_parser"] = model.reasoning_parser  # constraints hold from the answer on
        options |= model.engine_options
        if not on_cpu:
            options["gpu_memory_utilization"] = self._deployment.utilization
        return options

    def _video_limit(self) -> int | dict[str, int]:
        """Return the most videos of a prompt and the largest that is shown; 0 reserves no memory for any."""
        side = self._model.long_side
        sizes = {"num_frames": self._max_frames, "width": side, "height": side}
        return {"count": self._max_videos, **sizes} if self._max_videos else 0

    def _prompt(self, ask: Ask, pictures: Pictures) -> dict[str, Any]:
        """Return a request in vLLM's terms: the prompt string, its images and videos, and an id for each.

        vLLM caches what it processed and prompt blocks under these ids.
        """
        prompt: dict[str, Any] = {"prompt": self._chat.prompt(ask.system, ask.text)}
        if ask.frame_keys:
            data, ids = defaultdict[str, list[Any]](list), defaultdict[str, list[str]](list)
            for keys in by_place(ask.text, ask.frame_keys):
                kind = "image" if len(keys) == 1 else "video"
                images = [self._images.of(key, pictures) for key in keys]
                data[kind].append(images[0] if kind == "image" else _video(images))
                ids[kind].append(keys[0] if kind == "image" else digest_of(["video", *keys]))
            prompt |= {"multi_modal_data": dict(data), "multi_modal_uuids": dict(ids)}
        return prompt

    def _sampling(self, ask: Ask) -> "SamplingParams":
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        temperature, seed = decoding.sampling_of(self._model.sampling, ask)
        return SamplingParams(
            temperature=temperature,
            seed=seed,
            max_tokens=ask.max_tokens,
            structured_outputs=StructuredOutputsParams(**decoding.structured_output_args(ask))
            if ask.constraint != FREE
            else None,
            logprobs=decoding.alternatives(ask) if decoding.must_be_legal_reply(ask) else None,
            # The marks around reasoning are special tokens in many families; skipped, they are lost.
            skip_special_tokens=not self._model.separates_reasoning,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _stat_logger(self) -> "type[PrometheusStatLogger]":
        """Return the class of a counter that stands in the place of Prometheus's metrics.

        vLLM would add these, which nobody reads here, at the price of a tenth of a replica's processor time.
        """
        from vllm.v1.metrics.loggers import PrometheusStatLogger

        count_frames = self.count_frames

        class FrameCounter(PrometheusStatLogger):
            def __init__(self, **_: object) -> None:
                pass

            def record(
                self,
                scheduler_stats: "SchedulerStats | None",
                *_: object,
                mm_cache_stats: "MultiModalCacheStats | None" = None,
                **__: object,
            ) -> None:
                if mm_cache_stats is not None:
                    count_frames(processed=mm_cache_stats.queries - mm_cache_stats.hits)
                if scheduler_stats is not None and (step := scheduler_stats.iteration_details) is not None:
                    count_frames(encoded=step.num_encoder_inputs)

            def log_engine_initialized(self) -> None:
                pass

        return FrameCounter

    def count_frames(self, processed: int = 0, encoded: int = 0) -> None:
        """Add frames that missed the processor cache, and encoder runs; called by vLLM's statistics."""
        self._frames = FrameWork(self._frames.processed + processed, self._frames.encoded + encoded)


def _video(images: Sequence[Image.Image]) -> tuple[np.ndarray, dict[str, Any]]:
    frames = np.stack([np.asarray(image) for image in images])
    return frames, {**metadata_of(len(images)), "do_sample_frames": False}


def _option_logprobs(completion: "CompletionOutput", text: str, ask: Ask) -> dict[str, float]:
    """Return the log-probability that each displayed letter is the answer, or is named in multi-select."""
    steps = [
        decoding.TokenStep(
            said=tokens[token_id].decoded_token or "",
            logprobs={entry.decoded_token or "": entry.logprob for entry in tokens.values()},
        )
        for token_id, tokens in zip(completion.token_ids, completion.logprobs or (), strict=False)
    ]
    if ask.answer_type == "multi":
        return decoding.set_logprobs(steps, ask.constraint.legal)
    return decoding.letter_logprobs(steps, text, ask.constraint.legal)


def _reply(output: "RequestOutput", ask: Ask, split: decoding.ReasoningSplit | None) -> Reply:
    completion = output.outputs[0]
    if completion.finish_reason in _CUT_OFF:
        raise RequestError(ErrorKind.NO_ANSWER, f"vLLM ended the request with {completion.finish_reason!r}")
    reasoning, text = split(completion.text) if split else (None, completion.text)
    return Reply(
        text=text,
        reasoning=reasoning,
        finish_reason=completion.finish_reason or "unknown",
        prompt_tokens=len(output.prompt_token_ids or ()),
        cached_tokens=output.num_cached_tokens or 0,
        output_tokens=len(completion.token_ids),
        option_logprobs=_option_logprobs(completion, text, ask)
        if decoding.must_be_legal_reply(ask) and not reasoning  # the first tokens are not the answer's
        else {},
    )
