"""Benchmark of three ways to run vLLM in Ray Data on the same requests: requests per second, steady state.

    .venv/bin/python bench/engine_actor.py [rounds] [override ...]

`async` is the product's replica. `sync` is an actor that answers one study at a time with vLLM's offline API.
`ray.data.llm` is Ray's own processor with one row per request. All get the same prompts in the same order
with the same image ids, and as many requests in flight as their design allows. Rates count from the 256th
completion.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from stream import SWEEP, _rate, _streamed

WAYS = ("async", "sync", "ray.data.llm")
STUDIES_A_BATCH = 4  # requests that ray.data.llm holds in flight: 4 batches of 64


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            words = [*SWEEP, *sys.argv[2:], f"store={folder}/store", f"outputs={folder}/outputs"]
            rates["async"].append(_rate(_streamed(words, Path(folder))))
            for way in WAYS[1:]:
                out = Path(folder) / f"{way}.json"
                child = [sys.executable, __file__, "--way", way, str(out), *words, f"outputs={folder}/{way}"]
                subprocess.run(child, check=True, capture_output=True)
                rates[way].append(_rate(json.loads(out.read_text())))
        print(
            f"round {number + 1}: " + ", ".join(f"{way} {rates[way][-1]:.0f}/s" for way in WAYS), flush=True
        )
    for way in WAYS:
        print(f"{way}: median {statistics.median(rates[way]):.0f}/s")


def run(way: str, out: Path, words: list[str]) -> None:
    """All requests of the sweep one other way; writes when each was finished."""
    import ray

    from cardiolens.config.compose import read_spec
    from cardiolens.inference.models.token_counts import Rendering
    from cardiolens.inference.plan.missing import missing
    from cardiolens.inference.plan.plan import plan
    from cardiolens.inference.stream.loader import StudyLoader
    from cardiolens.runtime.connect import ray_cluster

    spec = read_spec(words)
    with ray_cluster(spec.cluster):
        planned = plan(spec)
        (model,) = spec.model
        folder = planned.identities[model.name].folder
        work = missing(planned.run.requests(model.name), Path("/nonexistent"), 1).work
        reader = StudyLoader(planned.store.root, planned.volumes, Rendering(model.long_side))
        asked = (
            ray.data.from_arrow(work)
            .repartition(work.num_rows)
            .map_batches(reader, batch_size=1, batch_format="pyarrow")
        )
        options = {
            "dtype": model.dtype,
            "max_model_len": model.max_model_len,
            "max_num_seqs": model.at_once,
            "limit_mm_per_prompt": {"image": planned.most_frames[model.name]},
            "kv_cache_memory_bytes": model.engine_options.get("kv_cache_memory_bytes", 4 * 2**30),
            "enforce_eager": True,
            "seed": 0,
        }
        answered = (_sync if way == "sync" else _ray_data_llm)(asked, str(folder), options)
        out.write_text(json.dumps([row["finished"] for row in answered.iter_rows()]))


def _prompts(study: dict[str, Any], chat: Any) -> list[dict[str, Any]]:
    from PIL import Image

    from cardiolens.inference.stream.loader import ask_of
    from cardiolens.inference.stream.replica import StudyInFlight

    pictures = StudyInFlight(study, None)
    images = {row["key"]: Image.fromarray(pictures(row["key"])).convert("RGB") for row in study["pictures"]}
    return [
        {
            "prompt": chat.prompt(ask.system, ask.text),
            "multi_modal_data": {"image": [images[key] for key in ask.frame_keys]},
            "multi_modal_uuids": {"image": list(ask.frame_keys)},
            "max_tokens": ask.max_tokens,
        }
        for ask in map(ask_of, study["asks"])
    ]


class _SyncActor:
    """Answers one study at a time; the engine drains before the next begins."""

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        from vllm import LLM

        from cardiolens.inference.models.chat import Chat

        self._llm = LLM(folder, **options)
        self._chat = Chat(Path(folder))

    def __call__(self, batch: pa.Table) -> pa.Table:
        from vllm import SamplingParams

        finished: list[float] = []
        for study in batch.to_pylist():
            prompts = _prompts(study, self._chat)
            sampling = [
                SamplingParams(temperature=0, max_tokens=prompt.pop("max_tokens")) for prompt in prompts
            ]
            self._llm.generate(prompts, sampling, use_tqdm=False)
            finished += [time.time()] * len(prompts)
        return pa.table({"finished": finished})


def _sync(asked: Any, folder: str, options: dict[str, Any]) -> Any:
    import ray

    return asked.map_batches(
        _SyncActor,
        fn_constructor_args=(folder, options),
        batch_size=1,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=1),
        num_cpus=0,
    )


class _Explode:
    """Turns studies into one row per request, as ray.data.llm expects them."""

    def __init__(self, folder: str) -> None:
        from cardiolens.inference.models.chat import Chat

        self._chat = Chat(Path(folder))

    def __call__(self, study: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "prompt": prompt["prompt"],
                "multimodal_data": prompt["multi_modal_data"],
                "multimodal_uuids": prompt["multi_modal_uuids"],
                "sampling_params": {"temperature": 0, "max_tokens": prompt["max_tokens"]},
            }
            for prompt in _prompts(study, self._chat)
        ]


def _ray_data_llm(asked: Any, folder: str, options: dict[str, Any]) -> Any:
    import ray
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    config = vLLMEngineProcessorConfig(
        model_source=folder,
        engine_kwargs=options,
        batch_size=64,
        max_concurrent_batches=STUDIES_A_BATCH,
        concurrency=1,
        chat_template_stage=False,
        tokenize_stage=False,
        detokenize_stage=False,
        prepare_multimodal_stage=False,
        log_engine_metrics=False,  # needs Ray's metrics, which are not installed
        placement_group_config={"bundle_per_worker": {"CPU": 1}},
    )
    processor = build_processor(config, postprocess=lambda row: {"finished": time.time()})
    rows = asked.flat_map(
        _Explode, fn_constructor_args=(folder,), compute=ray.data.ActorPoolStrategy(size=1), num_cpus=0
    )
    return processor(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--way"]:
        run(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
    else:
        main()
