"""Check that no work is done twice: requests, frames and tokens of a sweep against the fewest possible.

    .venv/bin/python bench/work.py [override ...]          e.g. 'budget=[8,16]' dataset=phantom_200 limit=20

Runs the slice ablation of the tiny model into an empty folder and reads its manifest. The fewest frames
are the distinct ones. The fewest prompt tokens are counted with a trie over the token sequences of all unique
requests, in whole blocks of the engine's cache: each distinct block after each distinct prefix counts once,
and each request adds the tokens behind its last whole block. Then a sweep with one more budget runs on the
same store, and a sweep with that budget alone on a copy of the store: both have the same new requests.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stream import engine_options

SWEEP = ["+experiment=slice_ablation", "model=[tiny]", "tracker=none"]
MORE = "budget=[8,16,24,32,64]"
ALONE = "budget=[24]"


def main() -> None:
    overrides = [*SWEEP, *sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        words = [*overrides, f"store={folder}/store", f"outputs={folder}/outputs"]
        first = _swept(words)
        fewest_frames, fewest_tokens, block = _fewest(words)
        again = _swept(words)
        completions, kept = Path(folder) / "store" / "completions", Path(folder) / "kept"
        shutil.copytree(completions, kept)
        more = _swept([*words, MORE])
        shutil.rmtree(completions)
        kept.rename(completions)
        alone = _swept([*words, ALONE])
    requests, frames, tokens = first["requests"], first["frames"], first["tokens"]
    print(
        f"requests: {requests['asked']:,} asked, {requests['unique']:,} unique, "
        f"{requests['executed']:,} executed"
    )
    print(f"the same again: {again['requests']['executed']} executed")
    added = more["requests"]["unique"] - requests["unique"]
    print(f"{MORE}: {added:,} new unique, {more['requests']['executed']:,} executed")
    both = [one["seconds"]["generate"] for one in (more, alone)]
    print(
        f"generating them: {both[0]:.1f} s; {ALONE}: {alone['requests']['executed']:,} executed in "
        f"{both[1]:.1f} s: {both[0] / both[1]:.2f} x; whole sweeps {more['wall']:.0f} and "
        f"{alone['wall']:.0f} s: {more['wall'] / alone['wall']:.2f} x"
    )
    print(
        f"frames: {frames['referenced']:,} referenced, {fewest_frames:,} distinct, {frames['processed']:,} "
        f"processed: {frames['processed'] / fewest_frames:.3f} x the fewest; {frames['encoded']:,} encoder "
        f"runs: {frames['encoded'] / fewest_frames:.3f} per distinct frame"
    )
    print(
        f"prompt tokens: {tokens['prompt']:,} asked, {fewest_tokens:,} the fewest in blocks of {block}, "
        f"{tokens['computed']:,} computed: {tokens['computed'] / fewest_tokens:.3f} x the fewest"
    )


def _swept(words: list[str]) -> dict[str, Any]:
    """Run a sweep; return its manifest and its seconds from start to end."""
    began = time.monotonic()
    command = [sys.executable, "-m", "cardiolens.sweep", *words]
    done = subprocess.run(command, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    run = next(line for line in done.stdout.splitlines() if line.startswith("run: "))
    manifest: dict[str, Any] = json.loads((Path(run.removeprefix("run: ")) / "manifest.json").read_text())
    return manifest | {"wall": time.monotonic() - began}


def _fewest(words: list[str]) -> tuple[int, int, int]:
    """Number of distinct frames, fewest prompt tokens, and tokens per block of the engine's cache."""
    from cardiolens.config.compose import read_spec
    from cardiolens.inference.plan.missing import missing
    from cardiolens.inference.plan.plan import plan

    planned = plan(read_spec(words))
    (model,) = planned.spec.model
    left = missing(planned.run.requests(model.name), Path("nowhere"), 1)
    frames = {key for _, shown in _sequences(planned, left) for key in shown}
    return len(frames), *fewest_tokens(planned, left)


def fewest_tokens(planned: Any, left: Any) -> tuple[int, int]:
    """Fewest prompt tokens that missing requests take, and tokens per block of the engine's cache."""
    block = _block_size(planned)
    blocks: set[int] = set()
    tokens = 0
    for sequence, _ in _sequences(planned, left):
        whole = (len(sequence) - 1) // block  # the last token is always computed
        prefix = 0
        for start in range(0, whole * block, block):
            prefix = hash((prefix, tuple(sequence[start : start + block])))
            tokens += 0 if prefix in blocks else block
            blocks.add(prefix)
        tokens += len(sequence) - whole * block
    return tokens, block


def _block_size(planned: Any) -> int:
    from vllm import AsyncEngineArgs

    configured = AsyncEngineArgs(**engine_options(planned)).create_engine_config()
    return int(configured.cache_config.block_size)


def _sequences(planned: Any, left: Any) -> Iterator[tuple[list[object], tuple[str, ...]]]:
    """Yield the prompt of each missing request as tokens, a frame's as (its key, n), and its frames' keys."""
    from cardiolens.inference.models.chat import Chat
    from cardiolens.inference.models.token_counts import Rendering
    from cardiolens.inference.stream.loader import StudyLoader, ask_of

    (model,) = planned.spec.model
    folder = planned.identities[model.name].folder
    chat = Chat(folder)
    reader = StudyLoader(planned.store.root, planned.volumes, Rendering(model.long_side))
    for row in range(left.work.num_rows):
        [[study]] = [table.to_pylist() for table in reader(left.work.slice(row, 1))]
        sizes = {picture["key"]: (picture["height"], picture["width"]) for picture in study["pictures"]}
        for ask in map(ask_of, study["asks"]):
            sequence: list[object] = []
            texts, rest = [], chat.prompt(ask.system, ask.text)
            for mark in chat._template.marks(len(ask.frame_keys)):
                text, _, rest = rest.partition(mark)
                texts.append(text)
            for number, text in enumerate([*texts, rest]):
                sequence += chat._tokenizer(text, add_special_tokens=False)["input_ids"]
                if number < len(ask.frame_keys):
                    key = ask.frame_keys[number]
                    sequence += [(key, n) for n in range(chat.image_tokens(sizes[key]))]
            yield sequence, ask.frame_keys


if __name__ == "__main__":
    main()
