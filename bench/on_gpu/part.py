"""One part of bench/gpu.py in a process of its own: prepare the cohort, run the stream, or run bare vLLM.

python -m bench.on_gpu.part prepare|stream|bare MARKS override ...
"""

import shutil
import sys
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from bench.on_gpu.engine import Marks


def main() -> None:
    kind, path, *words = sys.argv[1:]
    {"prepare": prepare, "stream": stream, "bare": bare}[kind](Marks(Path(path)), words)


def prepare(marks: Marks, words: list[str]) -> None:
    """Make the cohort and its shards."""
    from cardiolens.config.compose import read_spec
    from cardiolens.workflow.steps.prepare_studies import prepare_sweep

    prepare_sweep(read_spec(words))
    marks.note("prepared")


def stream(marks: Marks, words: list[str]) -> None:
    """Answer the sweep as the product does, from the plan to the last completion."""
    import ray

    from bench.on_gpu.engine import make_marked
    from cardiolens.config.compose import read_spec
    from cardiolens.inference.placement.footprint import nodes_of_ray
    from cardiolens.inference.plan.candidates import place_sweep
    from cardiolens.inference.plan.missing import missing_of
    from cardiolens.inference.plan.plan import plan
    from cardiolens.inference.stream import pipeline
    from cardiolens.inference.stream.execution import execute
    from cardiolens.runtime import stopping
    from cardiolens.runtime.connect import ray_cluster

    marks.note("imported", ray=ray.__version__)
    spec = read_spec(words)
    shutil.rmtree(spec.store / "completions", ignore_errors=True)
    planned = plan(spec)
    left = {name: missing_of(planned, name) for name in planned.identities}
    marks.note("planned", requests=sum(work.left for work in left.values()))
    pipeline.make_engine = partial(make_marked, marks)
    with ray_cluster(spec.cluster):
        marks.note("Ray")
        placement = place_sweep(planned, left, nodes_of_ray(spec.cluster))
        with stopping.graceful():
            executed = execute(planned, placement, left)
    (counters,) = executed.counters.values()
    marks.note("ended", ok=counters["ok"], failed=counters["error"], seconds=executed.seconds)


def bare(marks: Marks, words: list[str]) -> None:
    """Answer the same requests, in the same order, with vLLM's offline API and the same settings."""
    from PIL import Image

    from bench.on_gpu.engine import WARM, fitting, parts_of, settings_of, warm_frame, written, written_since
    from bench.stream import engine_of, offline_engine
    from cardiolens.config.compose import read_spec
    from cardiolens.inference.models.token_counts import Rendering
    from cardiolens.inference.plan.missing import missing
    from cardiolens.inference.plan.plan import plan
    from cardiolens.inference.stream.loader import StudyLoader, ask_of
    from cardiolens.inference.stream.replica import StudyInFlight

    marks.note("imported")
    spec = read_spec(words)
    planned = plan(spec)
    (model,) = spec.model
    left = missing(planned.run.requests(model.name), Path("nowhere"), 1)
    engine = engine_of(planned)
    marks.note("planned", requests=left.left)
    import vllm.entrypoints.llm  # noqa: F401 - its import is a part of the start

    marks.note("vLLM imported")
    options = _scheduled_as_the_stream(fitting(engine._engine_options(), marks))
    before = written()
    llm = offline_engine(engine, options)
    settings = settings_of(llm.llm_engine.vllm_config)
    marks.note("engine", parts=parts_of(written_since(before)), settings=settings)
    prompts = [engine._prompt(WARM, warm_frame)]
    llm.generate(prompts, [engine._sampling(WARM)], use_tqdm=False)
    marks.note("first answer")
    reader = StudyLoader(planned.store.root, planned.volumes, Rendering(model.long_side))
    prompts, sampling = [], []
    began = time.monotonic()
    for study in chain.from_iterable(table.to_pylist() for table in reader(left.work)):
        pictures = StudyInFlight(study, None)
        images = {
            row["key"]: Image.fromarray(pictures(row["key"])).convert("RGB") for row in study["pictures"]
        }
        for ask in map(ask_of, study["asks"]):
            prompt: dict[str, Any] = {"prompt": engine._chat.prompt(ask.system, ask.text)}
            if ask.frame_keys:
                prompt["multi_modal_data"] = {"image": [images[key] for key in ask.frame_keys]}
                prompt["multi_modal_uuids"] = {"image": list(ask.frame_keys)}
            prompts.append(prompt)
            sampling.append(engine._sampling(ask))
    marks.note("first ask", reading_s=time.monotonic() - began)
    outputs = llm.generate(prompts, sampling, use_tqdm=False)
    prompt_tokens = sum(len(output.prompt_token_ids or ()) for output in outputs)
    cached = sum(output.num_cached_tokens or 0 for output in outputs)
    marks.note("ended", ok=len(outputs), failed=0, prompt=prompt_tokens, cached=cached)


def _scheduled_as_the_stream(options: dict[str, Any]) -> dict[str, Any]:
    """Add the tokens of a step that the asynchronous engine would take: the offline one has another."""
    from vllm import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext

    made = AsyncEngineArgs(**options).create_engine_config(UsageContext.ENGINE_CONTEXT)
    return {**options, "max_num_batched_tokens": made.scheduler_config.max_num_batched_tokens}


if __name__ == "__main__":
    main()
