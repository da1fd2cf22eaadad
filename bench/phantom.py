"""Benchmark of phantoms: processor seconds and bytes per study by size and masks; drawing a large cohort."""

import tempfile
import time
from pathlib import Path

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import write_study
from cardiolens.phantom.roster import roster, study

STUDIES = ("PH-NORMAL", "PH-HCM-ASH", "PH-DCM", "PH-ICM-LAD", "PH-ACM")
COHORT = 670


def rendering(size: str, *, masks: bool) -> str:
    """Mean and largest processor seconds per study, and mean megabytes."""
    seconds, sizes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in STUDIES:
            started = time.process_time()
            write_study(
                name,
                PhantomSpec(canonical=STUDIES, size=size, also=("masks",) if masks else ()),
                Path(folder),
            )
            seconds.append(time.process_time() - started)
            files = (path for path in (Path(folder) / name).rglob("*") if path.is_file())
            sizes.append(sum(path.stat().st_size for path in files))
    mean, largest = sum(seconds) / len(seconds), max(seconds)
    return f"{mean:.2f} s a study (at most {largest:.2f}), {sum(sizes) / len(sizes) / 1e6:.1f} MB"


def main() -> None:
    for size in ("ci", "default"):
        for masks in (False, True):
            print(f"{size}, masks={masks}: {rendering(size, masks=masks)}")
    started = time.process_time()
    for study_id in roster(PhantomSpec(n_sampled=COHORT)):
        study(2026, study_id)
    print(f"drawing and labelling {COHORT} studies: {time.process_time() - started:.1f} s")


if __name__ == "__main__":
    main()
