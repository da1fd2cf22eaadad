"""Profile of the host's processor time per request, in one process without Ray: microseconds by step.

    .venv/bin/python bench/host.py [override ...]          e.g. selector=[clinical] limit=6

Studies are read and rendered, passed on as Arrow, turned into prompts for vLLM, answered by a reader with one
fixed reply, and written. The work of the engine's own process is not included. vLLM's own processing of the
prompt, with real processors, follows family by family (bench/on_host/processors.py).
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

SWEEP = ["+experiment=slice_ablation", "model=[tiny]", "tracker=none"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = [*SWEEP, f"store={folder}/store", f"outputs={folder}/outputs", *sys.argv[1:]]
        command = [sys.executable, "-m", "cardiolens.sweep", *words, "mode=plan"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _measure(words, Path(folder) / "written")
        shutil.rmtree(folder)
    here = Path(__file__).resolve().parents[1]
    subprocess.run([sys.executable, "-m", "bench.on_host.processors"], cwd=here, check=True)


def _measure(words: list[str], written: Path) -> None:
    from cardiolens.config.compose import read_spec
    from cardiolens.inference.engine.ask import Ask
    from cardiolens.inference.engine.readers import Simulated
    from cardiolens.inference.engine.vllm_engine import VllmEngine
    from cardiolens.inference.models.identity import identify
    from cardiolens.inference.models.token_counts import Rendering
    from cardiolens.inference.plan.missing import missing
    from cardiolens.inference.plan.plan import plan
    from cardiolens.inference.stream.loader import StudyLoader, ask_of
    from cardiolens.inference.stream.replica import Replica, StudyInFlight

    spec = read_spec(words)
    planned = plan(spec)
    (model,) = spec.model
    identity = identify(model, planned.store.models)
    work = missing(planned.run.requests(model.name), Path("nowhere"), 1).work
    reader = StudyLoader(planned.store.root, planned.volumes, Rendering(model.long_side))
    engine: Any = VllmEngine(model, identity, planned.most_frames[model.name], None)
    replica = Replica(lambda: Simulated(lambda ask: "ANSWER: A"), written, 64, spec.stream)
    engine._prompt(Ask("", "", "", (), "", (), 1), dict)  # loads the processor
    spent: dict[str, float] = defaultdict(float)
    requests = frames = 0
    written.mkdir()

    def timed(step: str, began: float) -> float:
        spent[step] += time.process_time() - began
        return time.process_time()

    async def go() -> None:
        nonlocal requests, frames
        for row in range(work.num_rows):
            at = time.process_time()
            (block,) = reader(work.slice(row, 1))
            at = timed("read, select, render", at)
            (study,) = block.to_pylist()
            at = timed("hand over", at)
            pictures = StudyInFlight(study, None)
            asks = [ask_of(ask) for ask in study["asks"]]
            for ask in asks:
                engine._prompt(ask, pictures)
            at = timed("prompt and images", at)
            async for _ in replica(block):
                pass
            timed("queue, answer, write", at)
            requests += len(asks)
            frames += sum(len(ask.frame_keys) for ask in asks)

    asyncio.run(go())
    print(f"{requests:,} requests of {work.num_rows} studies, {frames / requests:.0f} frames each")
    for step, seconds in spent.items():
        print(f"  {step:<44} {1e6 * seconds / requests:8.0f} us")


if __name__ == "__main__":
    main()
