"""An engine of which everything but the model is vLLM's: its scheduler, its prefix cache, its encoder cache.

A step answers at once: each request that the scheduler has computed to the end of its prompt gets a token.
What a GPU would have had to do is counted: prompt tokens computed, runs of the vision encoder, steps.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.on_scheduler.prompts import Prompt, ShownFrame

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 1,
    "num_key_value_heads": 4,
    "vocab_size": 128,
    "max_position_embeddings": 262_144,
}
BLOCK = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides how an engine's caches behave."""

    step_tokens: int = 16_384  # max_num_batched_tokens
    at_once: int = 128  # max_num_seqs
    kv_tokens: int = 400_000  # tokens that the KV cache holds
    encoder_tokens: int = 157_000  # embeddings that the encoder's cache holds
    hybrid_block: int | None = None  # tokens of a block of a hybrid model; None: attention alone
    match_unit: int | None = None  # prefix_match_unit of a hybrid model


@dataclass(slots=True)
class Work:
    """What an engine has done."""

    steps: int = 0
    computed: int = 0  # prompt tokens
    encoded: int = 0  # runs of the vision encoder
    encoded_tokens: int = 0
    outputs: int = 0


@dataclass
class SimulatedEngine:
    """One replica's engine, with as many requests in flight as the stream gives it."""

    settings: Settings
    folder: Path
    work: Work = field(default_factory=Work)
    finished: list[str] = field(default_factory=list)  # of the last step

    def __post_init__(self) -> None:
        self._scheduler = _scheduler(self.settings, self.folder)
        self._unit = self._scheduler.hash_block_size
        self._hashed: dict[int, tuple[int, ...]] = {}

    @property
    def busy(self) -> bool:
        return bool(self._scheduler.has_unfinished_requests())

    def add(self, name: str, prompt: Prompt, outputs: int) -> None:
        self._scheduler.add_request(_request(name, prompt, outputs, self._unit))

    def step(self) -> Work:
        """Let the scheduler choose a step; return what it took."""
        from vllm.v1.outputs import ModelRunnerOutput

        scheduler = self._scheduler
        chosen = scheduler.schedule()
        names = list(chosen.num_scheduled_tokens)
        step = Work(steps=1)
        sampled = []
        for name in names:
            request = scheduler.requests[name]
            before = request.num_computed_tokens - chosen.num_scheduled_tokens[name]
            step.computed += max(0, min(request.num_computed_tokens, request.num_prompt_tokens) - before)
            sampled.append([0] if request.num_computed_tokens >= request.num_tokens else [])
        for name, numbers in chosen.scheduled_encoder_inputs.items():
            step.encoded += len(numbers)
            features = scheduler.requests[name].mm_features
            step.encoded_tokens += sum(features[number].mm_position.length for number in numbers)
        step.outputs = sum(map(len, sampled))
        output = ModelRunnerOutput(names, {name: at for at, name in enumerate(names)}, sampled)
        given = scheduler.update_from_output(chosen, output)
        self.finished = [
            one.request_id
            for group in given.values()
            for one in group.outputs
            if one.finish_reason is not None
        ]
        for name in ("steps", "computed", "encoded", "encoded_tokens", "outputs"):
            setattr(self.work, name, getattr(self.work, name) + getattr(step, name))
        return step


def answered(
    settings: Settings,
    folder: Path,
    prompts: Sequence[Prompt],
    outputs: int = 2,
    *,
    beginnings_first: bool = False,  # as `inference/engine/engine_memory.py` has them computed
) -> Work:
    """Answer requests in their order, as many in flight as the stream has; return what it took."""
    engine = SimulatedEngine(settings, folder)
    waiting = deque(enumerate(prompts))
    in_flight, width = 0, settings.at_once * 3 // 2
    behind: dict[str, list[tuple[str, Prompt]]] = {}  # requests by the beginning that they wait for
    known: dict[tuple[ShownFrame, ...], str | None] = {}  # the beginning being computed; None: computed
    while waiting or in_flight:
        while waiting and in_flight < width:
            number, prompt = waiting.popleft()
            in_flight += 1
            shown = tuple(prompt.frames)
            if not beginnings_first or not shown or known.get(shown, "") is None:
                engine.add(str(number), prompt, outputs)
                continue
            if shown not in known:
                known[shown] = name = f"beginning {number}"
                behind[name] = []
                engine.add(
                    name, Prompt(prompt.tokens[: shown[-1].offset + shown[-1].length], prompt.frames), 1
                )
            behind[str(known[shown])].append((str(number), prompt))
        engine.step()
        for name in engine.finished:
            for request in behind.get(name, ()):
                engine.add(*request, outputs)
                known[tuple(request[1].frames)] = None
            in_flight -= name not in behind
    return engine.work


def _scheduler(settings: Settings, folder: Path) -> Any:
    import torch
    from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
    from vllm.v1.core.encoder_cache_manager import EncoderCacheManager
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, MambaSpec
    from vllm.v1.structured_output import StructuredOutputManager

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(LLAMA))
    model = ModelConfig(str(folder), skip_tokenizer_init=True, dtype="float16", max_model_len=131_072)
    block = settings.hybrid_block or BLOCK
    cache = CacheConfig(block_size=block, enable_prefix_caching=True)
    if settings.hybrid_block:
        cache.mamba_cache_mode = "align"
    config = VllmConfig(
        model_config=model,
        cache_config=cache,
        scheduler_config=SchedulerConfig(
            max_num_seqs=settings.at_once,
            max_num_batched_tokens=settings.step_tokens,
            max_model_len=131_072,
            is_encoder_decoder=False,
        ),
        device_config=DeviceConfig("cpu"),
    )
    specs: list[Any] = [FullAttentionSpec(block_size=block, num_kv_heads=1, head_size=1, dtype=torch.float16)]
    if settings.hybrid_block:
        state = MambaSpec(
            block_size=block, shapes=((1, 1),), dtypes=(torch.float16,), mamba_cache_mode="align"
        )
        specs += [state] * 3  # as many groups of state as vLLM makes of three such layers to one of attention
    blocks = settings.kv_tokens // block * len(specs)
    groups = [KVCacheGroupSpec([f"layer {at}"], spec) for at, spec in enumerate(specs)]
    cache.num_gpu_blocks = blocks
    scheduler = Scheduler(
        config,
        KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=groups),
        StructuredOutputManager(config),
        block_size=block,
        hash_block_size=settings.match_unit or block,
    )
    scheduler.max_num_encoder_input_tokens = max(settings.step_tokens, settings.encoder_tokens)
    scheduler.encoder_cache_manager = EncoderCacheManager(settings.encoder_tokens)
    return scheduler


def _request(name: str, prompt: Prompt, outputs: int, unit: int) -> Any:
    from vllm import SamplingParams
    from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
    from vllm.v1.request import Request

    features = [
        MultiModalFeatureSpec(
            data=None,
            modality="image",
            identifier=key,
            mm_position=PlaceholderRange(offset=offset, length=length),
        )
        for key, offset, length in prompt.frames
    ]
    return Request(
        request_id=name,
        prompt_token_ids=prompt.tokens,
        sampling_params=SamplingParams(max_tokens=outputs, ignore_eos=True),
        pooling_params=None,
        mm_features=features,
        block_hasher=_hasher(unit),
    )


def _hasher(unit: int) -> Callable[[Any], list[bytes]]:
    """Hash blocks by their tokens; tokens of frames are numbered by frame, so no other keys are needed."""

    def hashed(request: Any) -> list[bytes]:
        known = request.block_hashes
        tokens, made = request.all_token_ids, list[bytes]()
        parent = hash(known[-1]) if known else 0
        for start in range(len(known) * unit, len(tokens) - unit + 1, unit):
            key = hash((parent, *tokens[start : start + unit])).to_bytes(8, "little", signed=True)
            made.append(key)
            parent = hash(key)
        return made

    return hashed


def total(works: Iterable[Work]) -> Work:
    """Sum what several engines did."""
    works = list(works)
    return Work(*(sum(getattr(work, name) for work in works) for name in Work.__slots__))
