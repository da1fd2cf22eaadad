"""An engine that dies, is rebuilt, is closed and started again, with the same reply each time.

python -m tests.gpu.restart FOLDER, where FOLDER holds the files of a model
"""

import asyncio
import sys
from pathlib import Path

import numpy as np
import psutil

from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import Ask, Reply
from cardiolens.inference.engine.supervisor import Supervisor
from cardiolens.inference.engine.vllm_engine import VllmEngine
from cardiolens.inference.models.identity import identify, installed_engine
from cardiolens.inference.placement.placement import Deployment
from cardiolens.protocol.tasks.legal import Constraint
from cardiolens.storage.schemas import FRAME

ASK = Ask(
    request_key="one",
    system="You see one frame.",
    text=f"Frame 1: cine\n{FRAME}\nIs it black?\nA. Yes\nB. No",
    frame_keys=("black",),
    answer_type="single",
    option_keys=("A", "B"),
    max_tokens=4,
    constraint=Constraint(("A", "B")),
)


def black(_: str) -> np.ndarray:
    return np.zeros((64, 64), np.uint8)


def main() -> None:
    folder = Path(sys.argv[1])
    model = ModelSpec(
        name="tiny",
        source=str(folder),
        engine_options={"kv_cache_memory_bytes": 2**30, "load_format": "dummy", "enforce_eager": True},
    )
    needs = "gpu" if installed_engine()[0] == "cuda" else "processor"
    deployment = Deployment("tiny", 1, 1, ((),), 0.5, "", 0.0, needs)
    engine = VllmEngine(model, identify(model, folder.parent), 1, deployment)
    replies = asyncio.run(_replies(engine))
    assert replies[0].text in {"A", "B"}, replies
    assert len({(reply.text, reply.prompt_tokens) for reply in replies}) == 1, replies
    print(f"{len(replies)} equal replies: {replies[0].text} after {replies[0].prompt_tokens} tokens")


async def _replies(engine: VllmEngine) -> list[Reply]:
    supervisor = Supervisor(engine, max_restarts=1)
    replies = [await supervisor.answer(ASK, black)]
    for process in psutil.Process().children(recursive=True):
        if "EngineCore" in process.name() or "EngineCore" in " ".join(process.cmdline()):
            process.kill()
    replies.append(await supervisor.answer(ASK, black))
    assert supervisor.counters["engine_starts"] == 2
    engine.close()
    await engine.start()
    replies.append(await engine.answer(ASK, black))
    engine.close()
    return replies


if __name__ == "__main__":
    main()
