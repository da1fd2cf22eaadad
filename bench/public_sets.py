"""Benchmark of public sets as they are downloaded: time and memory of import and prepare, by layout.

    python -m bench.public_sets [layout ...] [studies=150] [hearts=10] [size=default] [folder=DIR]

The phantom writes each set with its header traits; the import is given no layout and has to find it. A few
hearts are rendered, and stand under the names of all studies: that takes minutes less, and costs the import
the same. Peak: of the largest process. Volumes: those taken, of those written. Prints a row of
docs/guides/public-sets.md for each layout.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bench.at_every_write.faulted_process import adopt_orphans
from bench.ingest import Cost, measured
from cardiolens.config.dataset import PhantomSpec
from tests.support.sets.set_export import subject_of
from tests.support.sets.set_writers import SETS

HEADER = (
    "| layout | files | MB | studies | volumes in, waiting, written | import: s, of processors, MiB "
    "| prepare: s, of processors, MiB |\n|---|---|---|---|---|---|---|"
)


def make(layout: str, studies: int, hearts: int, size: str, folder: str) -> None:
    """Write a set of so many studies, of which a few hearts are rendered; print how many volumes it has."""
    spec, form = PhantomSpec.model_validate({"size": size}), SETS[layout]
    rendered = [subject_of(f"PH-{k:04d}", spec, form, k) for k in range(1, min(hearts, studies) + 1)]
    subjects = [replace(rendered[k % len(rendered)], number=k + 1) for k in range(studies)]
    form.write(Path(folder), subjects)
    print(sum(len(subject.volumes) for subject in subjects))


def row(layout: str, studies: int, hearts: int, size: str, folder: Path) -> str:
    """Make a set, import and prepare it, and return its row."""
    made, out = folder / "made", folder / "hearts"
    words = [
        "-c",
        f"from bench.public_sets import make; make({layout!r}, {studies}, {hearts}, {size!r}, {str(made)!r})",
    ]
    told = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True)
    written = int(told.stdout)
    files = [path for path in made.rglob("*") if path.is_file()]
    whole = measured([sys.executable, "-m", "cardiolens.ingest", f"source={made}", f"out={out}"])
    builds = [json.loads(path.read_text()) for path in out.glob("proposals/*/build.json")]
    words = [f"dataset.studies={out / 'studies'}", f"dataset.questions={out / 'questions/questions.jsonl'}"]
    words += [
        "dataset=public_hearts",
        "dataset.allow=[same_pixels,unverified,public_hearts]",
        f"store={folder / 'store'}",
    ]
    prepared = measured([sys.executable, "-m", "cardiolens.prepare", *words])
    taken, waiting = (sum(len(build[name]) for build in builds) for name in ("volumes", "waiting"))
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
            studies, hearts = int(options.get("studies", "150")), int(options.get("hearts", "10"))
            size = options.get("size", "default")
            print(row(layout, studies, hearts, size, Path(scratch)), flush=True)


if __name__ == "__main__":
    main()
