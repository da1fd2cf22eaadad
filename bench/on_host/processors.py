"""Processor time of vLLM's own input processing, by family: milliseconds per request of 32 frames.

    .venv/bin/python -m bench.on_host.processors [FAMILY ...]

Families are those of tests/families that can be processed here: real processors with published settings,
stand-in tokenizers, no weights. A request is what the product hands to vLLM: prompt string, frames of
448 x 448 pixels, their ids. Cold: no frame was seen before. Cached: all were, under another question.
Handing over is the encoding of the request for the engine's process. Processor time of the whole process
counts, with one thread for torch and tokenizers, so that other work on the machine does not.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FRAMES, SIDE = 32, 448
COLD, CACHED = 3, 12  # requests measured
ALONE = {  # with one setting changed, for one family
    "qwen_2_5_vl, shared memory (mm_processor_cache_type: shm)": {"mm_processor_cache_type": "shm"},
    "qwen_2_5_vl, no cache (mm_processor_cache_gb: 0)": {"mm_processor_cache_gb": 0},
    "qwen_2_5_vl, normalized here (mm_device_do_normalize: false)": {"mm_device_do_normalize": False},
}
_THREADS = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "VLLM_LOGGING_LEVEL": "ERROR"}


def main() -> None:
    from tests.families.processing import PROCESSED

    families = sys.argv[1:] or list(PROCESSED)
    wanted: list[tuple[str, str, Mapping[str, Any]]] = [(family, family, {}) for family in families]
    wanted += [
        (name, name.split(",")[0], more) for name, more in ALONE.items() if name.split(",")[0] in families
    ]
    print(
        "| family | tokens | cold | handing over | cached | handing over |\n|---|---|---|---|---|---|",
        flush=True,
    )
    for name, family, more in wanted:
        command = [sys.executable, "-m", "bench.on_host.processors", "--measure", family, json.dumps(more)]
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **_THREADS}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"| {name} | not measured: {done.stderr.splitlines()[-1]} |", flush=True)
            continue
        told = json.loads(done.stdout.splitlines()[-1])
        cells = [
            f"{told['tokens']:,}",
            *(f"{told[cell]:.1f}" for cell in ("cold", "sent", "cached", "sent again")),
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def measure(family: str, more: Mapping[str, Any]) -> dict[str, float]:
    """Milliseconds per request: medians over cold and cached requests, processing and handing over."""
    from PIL import Image
    from vllm import AsyncEngineArgs, SamplingParams
    from vllm.renderers import renderer_from_config
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.input_processor import InputProcessor
    from vllm.v1.serial_utils import MsgpackEncoder

    from cardiolens.inference.models.chat import Chat
    from cardiolens.storage.schemas import FRAME
    from tests.families.build import build
    from tests.families.families import FAMILIES

    with tempfile.TemporaryDirectory() as folder:
        build(family, Path(folder))
        chat = Chat(Path(folder), FAMILIES[family].model)
        options: dict[str, Any] = {
            "model": folder,
            "dtype": "bfloat16",
            "load_format": "dummy",
            "trust_remote_code": True,
            "enforce_eager": True,
            "limit_mm_per_prompt": {"image": FRAMES, "video": 0},
            "kv_cache_memory_bytes": 2**30,
            "hf_overrides": {},
        }
        config = AsyncEngineArgs(**options, **more).create_engine_config(UsageContext.ENGINE_CONTEXT)
        config.model_config.max_model_len = 1 << 20  # of the tiny configuration; some families take 118,000
        inputs = InputProcessor(config, renderer_from_config(config))
        encoder = MsgpackEncoder()

        def request(number: int, study: int) -> tuple[float, float, int]:
            shown = "".join(f"Frame {place}: cine\n{FRAME}\n" for place in range(1, FRAMES + 1))
            prompt = {
                "prompt": chat.prompt(
                    "You see frames of one study.", f"{shown}\nQuestion {number}?\nA. Yes\nB. No"
                ),
                "multi_modal_data": {"image": frames[study]},
                "multi_modal_uuids": {"image": [f"{study}-{place}" for place in range(FRAMES)]},
            }
            began = time.process_time()
            made = inputs.process_inputs(str(number), prompt, SamplingParams(), ("generate",))
            processed = time.process_time()
            encoder.encode(made)
            tokens = len(made.prompt_token_ids or ())
            return 1000 * (processed - began), 1000 * (time.process_time() - processed), tokens

        frames = [
            [Image.new("RGB", (SIDE, SIDE), (study, place, 0)) for place in range(FRAMES)]
            for study in range(COLD + 1)
        ]
        request(0, 0)  # what is loaded at first use
        cold = [request(number, number) for number in range(1, COLD + 1)]
        cached = [request(COLD + number, COLD) for number in range(1, CACHED + 1)]
    return {
        "tokens": cold[0][2],
        "cold": median(one for one, _, _ in cold),
        "sent": median(one for _, one, _ in cold),
        "cached": median(one for one, _, _ in cached),
        "sent again": median(one for _, one, _ in cached),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], json.loads(sys.argv[3]))))
    else:
        main()
