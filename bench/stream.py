"""Benchmark of the stream against bare vLLM on the same requests, in turn: requests per second, steady state.

    .venv/bin/python bench/stream.py [pairs] [override ...]

Bare vLLM is one process that reads the same shards, renders with the same function and gives vLLM's offline
API the same requests in the same order with the same image ids, all at once. Both rates exclude the engine's
start: the stream's rate counts from its 256th completion to the last, that of bare vLLM from its first read
to its last answer (the offline API answers no request before it has accepted all of them). The second ratio
also excludes reading and rendering from the time of bare vLLM.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any

WARM = 256
SWEEP = ["+experiment=slice_ablation", "model=[tiny]", "tracker=none", "stream.flush_rows=64"]


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    overrides = [*SWEEP, *sys.argv[2:]]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        words = [*overrides, f"store={folder}/store", f"outputs={folder}/outputs"]
        for number in range(pairs):
            streamed = _rate(_streamed(words, Path(folder)))
            shutil.rmtree(Path(folder) / "store" / "completions")
            numbers = _bare(words, Path(folder) / "bare.json")
            n_requests, engine = numbers["requests"], numbers["requests"] / numbers["generating_s"]
            bare = n_requests / (numbers["reading_s"] + numbers["generating_s"])
            ratios.append(streamed / bare)
            print(
                f"pair {number + 1}: {n_requests:.0f} requests, stream {streamed:.0f}/s, bare {bare:.0f}/s, "
                f"ratio {ratios[-1]:.2f}; engine alone {engine:.0f}/s, ratio {streamed / engine:.2f}",
                flush=True,
            )
    print(f"median ratio {statistics.median(ratios):.2f} of {pairs} pairs")


def _rate(finished_s: list[float]) -> float:
    """Completions per second after the first WARM ones."""
    ordered = sorted(finished_s)
    assert len(ordered) > 2 * WARM, f"{len(ordered)} requests are too few to see a steady state"
    return (len(ordered) - WARM) / (ordered[-1] - ordered[WARM - 1])


def _streamed(overrides: list[str], folder: Path) -> list[float]:
    from cardiolens.storage import schemas, tables

    command = [sys.executable, "-m", "cardiolens.sweep", *overrides]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (completions,) = (folder / "store" / "completions").iterdir()
    written = tables.read(completions, schemas.COMPLETIONS, ("written_at",))["written_at"]
    return [moment.timestamp() for moment in written.to_pylist()]


def _bare(overrides: list[str], out: Path) -> dict[str, float]:
    """Run bare vLLM; return the requests, the seconds of reading and rendering, and those of generating."""
    command = [sys.executable, __file__, "--bare", str(out), *overrides]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    numbers: dict[str, float] = json.loads(out.read_text())
    return numbers


def engine_options(planned: Any) -> dict[str, Any]:
    """Options with which the sweep's one model starts on this machine."""
    options: dict[str, Any] = engine_of(planned)._engine_options()
    return options


def engine_of(planned: Any) -> Any:
    """Engine of the sweep's one model, not started."""
    from cardiolens.inference.engine.vllm_engine import VllmEngine
    from cardiolens.inference.placement.footprint import nodes_to_plan_with
    from cardiolens.inference.plan.candidates import place_sweep
    from cardiolens.inference.plan.missing import missing

    (model,) = planned.spec.model
    left = {model.name: missing(planned.run.requests(model.name), Path("nowhere"), 1)}
    ((group,),) = place_sweep(planned, left, nodes_to_plan_with(planned.spec.cluster)).waves
    return VllmEngine(model, planned.identities[model.name], planned.most_frames[model.name], group)


def offline_engine(engine: Any, options: dict[str, Any]) -> Any:
    """vLLM's offline engine with the encoder cache of the stream's engine, which is no option of vLLM."""
    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs

    made = EngineArgs.create_engine_config

    def enlarged(arguments: Any, *words: Any, **more: Any) -> Any:
        config = made(arguments, *words, **more)
        engine.tune(config)
        return config

    EngineArgs.create_engine_config = enlarged
    try:
        return LLM(**options)
    finally:
        EngineArgs.create_engine_config = made


def bare(out: Path, overrides: list[str]) -> None:
    """Answer all missing requests of the sweep with vLLM's offline API."""
    from PIL import Image
    from vllm.config import SchedulerConfig

    from cardiolens.config.compose import read_spec
    from cardiolens.inference.models.chat import Chat
    from cardiolens.inference.models.token_counts import Rendering
    from cardiolens.inference.plan.missing import missing
    from cardiolens.inference.plan.plan import plan
    from cardiolens.inference.stream.loader import StudyLoader, ask_of
    from cardiolens.inference.stream.replica import StudyInFlight

    planned = plan(read_spec(overrides))
    (model,) = planned.spec.model
    identity = planned.identities[model.name]
    left = missing(planned.run.requests(model.name), planned.store.completions(identity.model_key), 1)
    engine = engine_of(planned)
    # LLM would take twice the tokens a step that AsyncLLM takes on CPU.
    alike = {"max_num_batched_tokens": SchedulerConfig.DEFAULT_MAX_NUM_BATCHED_TOKENS}
    llm = offline_engine(engine, alike | engine._engine_options())
    assert identity.folder is not None
    chat = Chat(identity.folder)
    reader = StudyLoader(planned.store.root, planned.volumes, Rendering(model.long_side))
    prompts, sampling = [], []
    began = time.monotonic()
    for study in chain.from_iterable(table.to_pylist() for table in reader(left.work)):
        pictures = StudyInFlight(study, None)
        images = {
            row["key"]: Image.fromarray(pictures(row["key"])).convert("RGB") for row in study["pictures"]
        }
        for ask in map(ask_of, study["asks"]):
            prompts.append(
                {
                    "prompt": chat.prompt(ask.system, ask.text),
                    "multi_modal_data": {"image": [images[key] for key in ask.frame_keys]},
                    "multi_modal_uuids": {"image": list(ask.frame_keys)},
                }
            )
            sampling.append(engine._sampling(ask))
    reading_s = time.monotonic() - began
    llm.generate(prompts[:1], sampling[:1], use_tqdm=False)
    began = time.monotonic()
    llm.generate(prompts, sampling, use_tqdm=False)
    numbers = {"requests": len(prompts), "reading_s": reading_s, "generating_s": time.monotonic() - began}
    out.write_text(json.dumps(numbers))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        bare(Path(sys.argv[2]), sys.argv[3:])
    else:
        main()
