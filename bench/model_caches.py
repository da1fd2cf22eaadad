"""Prompt tokens and encoder runs of models whose caches are tight: recurrent layers, and frames in tiles.

    .venv/bin/python -m bench.model_caches QUESTIONS hybrid|tiles [studies] [override ...]

QUESTIONS are those of phantom_ci (`jobs/make_phantom.py dataset=phantom_ci out=...`). A plan's requests
pass vLLM's own scheduler and caches (bench/on_scheduler). *hybrid*: blocks of 528 tokens (Qwen3.5-4B and
9B, whose state in float32 takes as much as the keys and values of so many tokens) and of 784 (27B), without
and with beginnings that are computed first. *tiles*: frames of 3,328 tokens (InternVL3.5, 12 tiles and a
thumbnail), requests in the order of the plan and in that of their beginnings. Fewest counts each distinct
beginning once, to the token or to the frame.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.on_scheduler import engine as simulated
from bench.on_scheduler.engine import Settings, Work, answered
from bench.on_scheduler.prompts import Prompt, Tokens, planned_work, prompts_of
from cardiolens.inference.plan.missing import Missing

HYBRID_TOKENS, TILE_TOKENS, CONTEXT = 196, 3_328, 40_960
BLOCKS = (528, 784)
MATCH_UNIT = 16
TILED = Settings(kv_tokens=350_000)  # of an 8B model on 80 GiB
FRAMES_THAT_FIT = (75, 150)  # in the encoder's cache


def main() -> None:
    questions, kind, words = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        overrides = ["selector=[clinical,random,uniform]", *words[1:]]
        _, left = planned_work(folder, int(words[0]) if words else 4, questions, overrides)
        lines = _hybrid(left, folder) if kind == "hybrid" else _tiles(left, folder)
        for line in lines:
            print(line, flush=True)


def _hybrid(left: Missing, folder: Path) -> Iterator[str]:
    prompts = [prompt for study in prompts_of(left.work, Tokens(HYBRID_TOKENS)) for prompt in study]
    fewest = fewest_tokens(prompts, MATCH_UNIT)
    yield f"{len(prompts):,} requests; fewest prompt tokens {fewest:,} in blocks of {MATCH_UNIT}"
    for block in BLOCKS:
        plain = Settings(hybrid_block=block)
        for name, settings, first in (
            ("as vLLM does", plain, False),
            (f"matched every {MATCH_UNIT} tokens", replace(plain, match_unit=MATCH_UNIT), False),
            ("and beginnings first", replace(plain, match_unit=MATCH_UNIT), True),
        ):
            work = answered(settings, folder / "model", prompts, beginnings_first=first)
            share = work.computed / fewest
            yield f"blocks of {block}, {name}: {share:.3f} of the fewest, {work.steps:,} steps"


def _tiles(left: Missing, folder: Path) -> Iterator[str]:
    simulated.BLOCK = 64
    in_plan = left.work.set_column(2, "rows", [[sorted(rows) for rows in left.work["rows"].to_pylist()]])
    for fit in FRAMES_THAT_FIT:
        settings = replace(TILED, encoder_tokens=fit * TILE_TOKENS)
        for name, work in (("order of the plan", in_plan), ("order of beginnings", left.work)):
            studies = prompts_of(work, Tokens(TILE_TOKENS))
            prompts = [prompt for study in studies for prompt in study if len(prompt.tokens) < CONTEXT]
            done = answered(settings, folder / "model", prompts)
            yield f"{fit} frames fit, {name}: {_tiled(done, prompts)}"


def _tiled(done: Work, prompts: Sequence[Prompt]) -> str:
    keys = [tuple(frame.key for frame in prompt.frames) for prompt in prompts]
    distinct = {key for shown in keys for key in shown}
    fewest = len({shown[:end] for shown in keys for end in range(1, len(shown) + 1)}) * TILE_TOKENS
    return (
        f"{len(prompts):,} requests, {done.encoded / len(distinct):.2f} encoder runs a distinct frame, "
        f"prompt tokens {done.computed / fewest:.3f} of those of distinct beginnings"
    )


def fewest_tokens(prompts: Sequence[Prompt], block: int) -> int:
    """Count each distinct block behind each beginning once, and the tokens behind the last whole block."""
    seen: set[int] = set()
    tokens = 0
    for prompt, _ in prompts:
        whole, beginning = (len(prompt) - 1) // block * block, 0
        for start in range(0, whole, block):
            beginning = hash((beginning, *prompt[start : start + block]))
            tokens += 0 if beginning in seen else block
            seen.add(beginning)
        tokens += len(prompt) - whole
    return tokens


if __name__ == "__main__":
    main()
