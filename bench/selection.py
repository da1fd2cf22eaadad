"""Benchmark of selection: processor time, and frames shared by nested orders: bench/selection.py [studies]

The name select.py would hide the standard library's module from every script in this folder.
"""

import sys
import time
from collections.abc import Iterator

import numpy as np

from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.features import volume_features
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.structure import StudyStructure, VolumeStructure

BUDGETS = (8, 16, 32, 64)
SUBTASKS = load_catalogue("openprotocol-1").subtasks.values()
SHAPES = {
    "cine_sax": (10, 25),
    "cine_4ch": (3, 25),
    "cine_3ch": (3, 25),
    "cine_2ch": (3, 25),
    "lge_sax": (10, 1),
    "lge_4ch": (1, 1),
    "lge_2ch": (1, 1),
    "lge_3ch": (1, 1),
    "perf_sax": (3, 50),
    "t2_sax": (5, 1),
    "t2_4ch": (1, 1),
}


def study(number: int) -> StudyStructure:
    """Make a study of the default phantom's size; numbers of slices and the bolus vary between studies."""
    volumes = {}
    for volume_id, (n_slices, n_phases) in SHAPES.items():
        code, _, view = volume_id.partition("_")
        volumes[volume_id] = VolumeStructure(
            volume_id,
            {"perf": "perfusion"}.get(code, code),
            view,
            n_slices + (number % 3 if volume_id == "cine_sax" else 0),
            n_phases,
            0,
            round(0.37 * n_phases) % n_phases,
            t_on=8,
            t_peak=12 + number % 9,
        )
    return StudyStructure(f"PH-{number:04d}", volumes)


def features(structure: StudyStructure) -> StudyFeatures:
    """Features of noise: the cost does not depend on the content of frames."""
    dice = np.random.default_rng(0)
    return StudyFeatures(
        {
            name: volume_features(
                dice.integers(0, 256, (volume.n_frames, 128, 128), np.uint8),
                volume.n_phases,
                cyclic=volume.sequence == "cine",
            )
            for name, volume in structure.volumes.items()
        }
    )


def selections(
    selector: SelectorSpec, structure: StudyStructure, looked: StudyFeatures | None
) -> Iterator[tuple[Frame, ...]]:
    for subtask in SUBTASKS:
        for seed in selector.seeds or (None,):
            for budget in BUDGETS:
                yield choose(selector, seed, structure, subtask, budget, features=looked).frames


def prefilled(lists: list[tuple[Frame, ...]]) -> int:
    """Number of frames to process if every list reuses its longest prefix shared with an earlier list."""
    return len({frames[: end + 1] for frames in lists for end in range(len(frames))})


def report(selector: SelectorSpec, studies: list[StudyStructure], looked: list[StudyFeatures | None]) -> None:
    """Print one line: processor time per selection, and the share of frames that prefixes save."""
    spent, asked, distinct, shared = 0.0, 0, 0, 0
    for structure, seen in zip(studies, looked, strict=True):
        started = time.process_time()
        lists = list(selections(selector, structure, seen))
        spent += time.process_time() - started
        asked += len(lists)
        distinct += sum(map(len, set(lists)))
        shared += prefilled(lists)
    print(
        f"{selector.kind:9} {selector.order:10} {spent / asked * 1e6:7.1f} us a selection; a study: "
        f"{asked // len(studies)} selections, {distinct // len(studies)} frames in distinct ones, "
        f"{shared // len(studies)} to process with shared prefixes ({1 - shared / distinct:.0%} saved)"
    )


def main(n_studies: int) -> None:
    studies = [study(number) for number in range(n_studies)]
    some = studies[: max(1, n_studies // 10)]
    started = time.process_time()
    looked: list[StudyFeatures | None] = [features(structure) for structure in some]
    print(f"features and distances: {(time.process_time() - started) / len(some):.2f} s a study")
    for kind in ("clinical", "random", "uniform", "kcenter", "kmedoids"):
        for order in ("presented", "nested"):
            seeds = (2026,) if kind == "random" else ()
            selector = SelectorSpec(name=kind, kind=kind, seeds=seeds, order=order)
            if selector.looks_at_pixels:
                report(selector, some, looked)
            else:
                report(selector, studies, [None] * n_studies)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
