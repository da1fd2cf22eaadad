"""Benchmark for a GPU machine: the stream against bare vLLM, and the time that the GPUs were idle.

    .venv/bin/python bench/gpu.py MODEL [pairs] [override ...]

Runs bench/stream.py on that model and samples every GPU through NVML ten times per second. With the override
`model.MODEL.load_format=dummy` the weights are random: only the configuration, tokenizer and processor of the
model need to be on the machine. Never run so far.
"""

import subprocess
import sys
import threading
from pathlib import Path

STREAM = Path(__file__).with_name("stream.py")
IDLE_PERCENT = 5  # utilisation below which a GPU counts as idle


def main() -> None:
    import pynvml

    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    model, pairs, *overrides = [*sys.argv[1:3], *(["3"] if len(sys.argv) < 3 else []), *sys.argv[3:]]
    pynvml.nvmlInit()
    gpus = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
    print(", ".join(pynvml.nvmlDeviceGetName(gpu) for gpu in gpus))
    samples: list[int] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.1):
            samples.extend(pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu for gpu in gpus)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        subprocess.run([sys.executable, str(STREAM), pairs, f"model=[{model}]", *overrides], check=True)
    finally:
        over.set()
        sampler.join()
    idle = sum(used < IDLE_PERCENT for used in samples) / max(1, len(samples))
    print(f"GPUs idle in {idle:.0%} of {len(samples):,} samples, engine starts and bare runs included")


if __name__ == "__main__":
    main()
