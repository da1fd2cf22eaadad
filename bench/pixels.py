"""What breaks between a study's file and a reader's eye cost the small reader (bench/results/reader.md).

    python -m bench.pixels
    python -m bench.pixels --reader /data/reader        # one that examples/train_reader made, in its folder

Copies of the same phantom studies, in each of which one thing is wrong, are read in one sweep with real vLLM.
A fault of the same kind in preprocessing, shards, selection or rendering would do the same to the copy that
nobody touched. The table has, for each break, how many questions were lost and won by it, with the chance of
that if a change were as likely a loss as a gain (a sign test, questions as units).
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

import cardiolens
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort

Frames = NDArray[Any]  # (x, y, slice, phase), as stored
Break = Callable[[Frames], Frames]

_TALL = 4  # slices of a stack that can be one off: of a shorter one, preparation refuses an edge shown twice
WRONG_STUDY = "wrong_study"
WINDOW = "window"
UNTOUCHED = "untouched"


def _shifted(frames: Frames) -> Frames:
    """Each slice where the next one belongs; the first stands twice, and the last is gone."""
    if frames.shape[2] < _TALL:
        return frames
    return np.concatenate([frames[:, :, :1], frames[:, :, :-1]], axis=2)


FRAMES: Mapping[str, Break] = {
    UNTOUCHED: lambda frames: frames,
    "reversed": lambda frames: frames[:, :, ::-1, ::-1],
    "slice_off": _shifted,
    "phase_off": lambda frames: np.roll(frames, frames.shape[3] // 3, axis=3),
    "turned": lambda frames: np.rot90(frames, axes=(0, 1)),
    "mirrored": lambda frames: frames[::-1],
}
BREAKS = (*FRAMES, WINDOW, WRONG_STUDY)
_EVERY = 10  # question that is asked of another patient's study
_UNSEEN = (0.0, 65535.0)  # a window as wide as the file's numbers, as if none were set


def main() -> int:
    """Make cohorts, sweep and print; 1 if the sweep fails."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--reader", type=Path)
    words.add_argument("--seed", type=int, default=61007)
    words.add_argument("--studies", type=int, default=20)
    words.add_argument("--out", type=Path, default=Path("build/pixels"))
    words.add_argument("--breaks", nargs="+", choices=BREAKS[1:], default=BREAKS[1:])
    words.add_argument("--words", nargs="*", default=[], help="of the sweep")
    asked = words.parse_args()
    out, breaks = asked.out.absolute(), (UNTOUCHED, *asked.breaks)
    show(read(out, asked.seed, asked.studies, *asked.words, breaks=breaks, folder=asked.reader))
    return 0


def read(
    out: Path,
    seed: int,
    studies: int,
    *words: str,
    breaks: Sequence[str] = BREAKS,
    folder: Path | None = None,
) -> dict[str, dict[str, bool]]:
    """Make the cohorts in a folder and read them; answers as `right` has them."""
    make_cohort(PhantomSpec(seed=seed, n_sampled=studies), out / "whole")
    break_cohort(out / "whole", out / "broken", breaks)
    command = [
        *(sys.executable, "-m", "cardiolens.sweep", "dataset=real", "dataset.name=broken", "name=pixels"),
        *(f"dataset.studies={out}/broken/studies", f"dataset.questions={out}/broken/questions.jsonl"),
        "dataset.allow=[same_pixels]",  # breaks are copies
        *(f"store={out}/store", f"outputs={out}/outputs", "model=[reader_small]", "selector=[clinical]"),
        *("budget=[16]", "prompt=[standard]", "answer_format=choice", "tracker=none", *words),
    ]
    subprocess.run(command, cwd=folder, check=True)  # whose conf/ describes a model of its own
    (run,) = (out / "outputs").iterdir()
    return right(run)


def right(run: Path) -> dict[str, dict[str, bool]]:
    """Whether each question was answered rightly, by break and by the id that it has in the cohort."""
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for row in cardiolens.read_run(run).verdicts.to_pylist():
        name, _, qa_id = row["qa_id"].partition("-")
        if row["answer_type"] != "report":
            found[name][qa_id] = row["correct"] is True
    return found


def show(answers: Mapping[str, Mapping[str, bool]]) -> None:
    """Print the table."""
    print("\n| break | n | right, % | lost | won | p |\n|---|---|---|---|---|---|")
    for name, broken in sorted(answers.items(), key=lambda one: BREAKS.index(one[0])):
        lost, won = changed(answers, name)
        share = 100 * sum(broken.values()) / len(broken)
        print(f"| {name} | {len(broken)} | {share:.1f} | {lost} | {won} | {sign_test(lost, won):.2g} |")


def changed(answers: Mapping[str, Mapping[str, bool]], name: str) -> tuple[int, int]:
    """Questions that a break made wrong, and right."""
    whole, broken = answers[UNTOUCHED], answers[name]
    lost = sum(whole[qa_id] and not broken[qa_id] for qa_id in whole)
    return lost, sum(broken[qa_id] and not whole[qa_id] for qa_id in whole)


def sign_test(lost: int, won: int) -> float:
    """Chance of at least so many losses if a change were as likely a loss as a gain."""
    n = lost + won
    return sum(comb(n, k) for k in range(lost, n + 1)) / 2**n


def break_cohort(cohort: Path, out: Path, breaks: Sequence[str] = BREAKS) -> None:
    """Write studies and questions of a phantom cohort once for each break.

    The ids say which: `turned-PH-0001`. Headers, captions and questions stay what they are.
    """
    ids = sorted(folder.name for folder in (cohort / "studies").iterdir())
    asked = [json.loads(line) for line in (cohort / "questions.jsonl").read_text().splitlines()]
    records = []
    for name in breaks:
        for study_id in ids:
            folder = out / "studies" / f"{name}-{study_id}"
            shutil.copytree(cohort / "studies" / study_id, folder)
            _rewrite(folder, name)
        for place, record in enumerate(asked):
            shown = record["study_id"]
            if name == WRONG_STUDY and place % _EVERY == 0:
                shown = ids[(ids.index(shown) + 1) % len(ids)]
            own = {part: f"{name}-{record[part]}" for part in ("qa_id", "patient_id")}
            records.append({**record, **own, "study_id": f"{name}-{shown}", "patient_id": f"{name}-{shown}"})
    (out / "questions.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _rewrite(folder: Path, name: str) -> None:
    path = folder / "study.json"
    study = json.loads(path.read_text())
    study |= {"study_id": folder.name, "patient_id": folder.name}
    for volume in study["volumes"]:
        if name == WINDOW:
            volume["window"] = _UNSEEN
        elif name in FRAMES:
            volume["sha256"] = _changed(folder / volume["path"], volume["layout"], FRAMES[name])
    path.write_text(json.dumps(study))


def _changed(path: Path, layout: Mapping[str, Any], change: Break) -> str:
    """Write a volume with other frames under the header that it has; its new digest."""
    image = nib.load(path)
    stored = np.asarray(image.dataobj)
    frames = stored.reshape(*stored.shape[:2], layout["n_slices"], layout["n_phases"])
    nib.save(nib.Nifti1Image(change(frames).reshape(stored.shape), None, image.header), path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
