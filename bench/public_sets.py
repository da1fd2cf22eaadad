"""Benchmark of public sets as they are downloaded: time and memory of import and prepare, by layout.

    python -m bench.public_sets [layout ...] [studies=150] [size=default] [folder=DIR]

The phantom writes each set with its header traits; the import is given no layout and has to find it. Peak:
of the largest process. Volumes: those taken, of those written. Prints a row of docs/public-hearts.md for each
layout.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.at_every_write.faulted_process import adopt_orphans
from bench.ingest import MAKE, Cost, measured

HEADER = (
    "| layout | files | MB | studies | volumes in, waiting, written | import: s, of processors, MiB "
    "| prepare: s, of processors, MiB |\n|---|---|---|---|---|---|---|"
)


def row(layout: str, studies: int, size: str, folder: Path) -> str:
    """Make a set, import and prepare it, and return its row."""
    words = ["dataset=phantom_200", f"dataset.phantom.n_sampled={studies}", f"dataset.phantom.size={size}"]
    made, out = folder / "made", folder / "hearts"
    command = [sys.executable, str(MAKE), *words, f"format={layout}", f"out={made}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    files = [path for path in (made / "export").rglob("*") if path.is_file()]
    truths = [json.loads(line) for line in (made / "truth.jsonl").read_text().splitlines()]
    whole = measured([sys.executable, "-m", "cardiolens.ingest", f"source={made / 'export'}", f"out={out}"])
    builds = [json.loads(path.read_text()) for path in out.glob("proposals/*/build.json")]
    words = [f"dataset.studies={out / 'studies'}", f"dataset.questions={out / 'questions/questions.jsonl'}"]
    words += ["dataset=public_hearts", f"store={folder / 'store'}"]
    prepared = measured([sys.executable, "-m", "cardiolens.prepare", *words])
    taken, waiting = (sum(len(build[name]) for build in builds) for name in ("volumes", "waiting"))
    written = sum(len(truth["volumes"]) for truth in truths)
    size_mb = sum(path.stat().st_size for path in files) / 1e6
    cells = [layout, len(files), f"{size_mb:.0f}", len(builds), f"{taken}, {waiting}, {written}"]
    return f"| {' | '.join(map(str, [*cells, _cost(whole), _cost(prepared)]))} |"


def _cost(cost: Cost) -> str:
    return f"{cost.seconds:.0f}, {cost.processor_s:.0f}, {cost.peak_mib:.0f}"


def main() -> None:
    adopt_orphans()
    options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    layouts = [word for word in sys.argv[1:] if "=" not in word] or ["acdc", "emidec", "cinemyops"]
    print(HEADER, flush=True)
    for layout in layouts:
        with tempfile.TemporaryDirectory(dir=options.get("folder")) as scratch:
            studies, size = int(options.get("studies", "150")), options.get("size", "default")
            print(row(layout, studies, size, Path(scratch)), flush=True)


if __name__ == "__main__":
    main()
