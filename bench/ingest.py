"""Benchmark of the import of one study of many images: time, processors and memory, beside parsing alone.

    python -m bench.ingest [images] [rounds] [size]        default: 3000 3 default

A phantom study as a Siemens scanner exports it; its series are repeated under new UIDs, as acquisitions done
again, until there are so many images. The limit is what pydicom takes to parse every file.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pydicom
from pydicom.uid import generate_uid

from bench.at_every_write.faulted_process import adopt_orphans

MAKE = Path(__file__).resolve().parents[1] / "jobs" / "make_phantom.py"


def exported(folder: Path, n_images: int, size: str) -> list[Path]:
    """Write a study of at least `n_images` images; return its files."""
    words = ["dataset=phantom_ci", "dataset.phantom.n_sampled=1", f"dataset.phantom.size={size}"]
    words += [f"out={folder}/made", "format=dicom", "vendor=siemens"]
    subprocess.run([sys.executable, MAKE, *words], check=True, stdout=subprocess.DEVNULL)
    made = [path for path in (folder / "made" / "export").rglob("*") if path.is_file()]
    read = [dataset for dataset in map(_image, made) if dataset is not None]
    export, written = folder / "export", []
    export.mkdir()
    for again in range(-(-n_images // len(read))):
        uids = {dataset.SeriesInstanceUID: generate_uid() for dataset in read}
        for dataset, series in [(each, str(each.SeriesInstanceUID)) for each in read]:
            dataset.SeriesInstanceUID = uids[series]
            dataset.SeriesNumber = int(dataset.SeriesNumber) + 100
            dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = generate_uid()
            path = export / f"{again}-{len(written)}.dcm"
            dataset.save_as(path, enforce_file_format=True)
            written.append(path)
    return written


def _image(path: Path) -> pydicom.Dataset | None:
    dataset = pydicom.dcmread(path, force=True)
    return dataset if "PixelData" in dataset else None


@dataclass(frozen=True)
class Cost:
    """What a command took: wall time, time of processors in all its processes, peak of its largest one."""

    seconds: float
    processor_s: float
    peak_mib: float


def measured(command: list[str]) -> Cost:
    """Run a command to its end, and that of all processes it leaves behind."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    usages = [usage, *_orphans()]
    processor_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return Cost(seconds, processor_s, max(usage.ru_maxrss for usage in usages) / 1024)


def _orphans() -> Iterator[resource.struct_rusage]:
    """Usage of processes without parents, the server of the import's workers among them, as they end."""
    while True:
        try:
            yield os.wait4(-1, 0)[2]
        except ChildProcessError:
            return


def main() -> None:
    adopt_orphans()
    n_images = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    size = sys.argv[3] if len(sys.argv) > 3 else "default"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        files = exported(folder, n_images, size)
        mb = sum(path.stat().st_size for path in files) / 1e6
        print(f"{len(files)} images, {mb:.0f} MB", flush=True)
        parse = (
            "import sys, pathlib, pydicom\nfor p in pathlib.Path(sys.argv[1]).iterdir(): pydicom.dcmread(p)"
        )
        for number in range(rounds):
            out = folder / f"out{number}"
            limit = measured([sys.executable, "-c", parse, str(folder / "export")])
            words = [f"source={folder / 'export'}", f"out={out}"]
            whole = measured([sys.executable, "-m", "cardiolens.ingest", *words])
            again = measured([sys.executable, "-m", "cardiolens.ingest", *words])
            print(
                f"round {number + 1}: import {whole.seconds:.1f} s, {whole.processor_s:.1f} s of processors, "
                f"peak {whole.peak_mib:.0f} MiB, {len(files) / whole.processor_s:.0f} images a processor "
                f"second; again {again.seconds:.1f} s, {again.processor_s:.1f} s of processors; parsing "
                f"alone {limit.seconds:.1f} s, {limit.processor_s:.1f} s of processors, "
                f"{limit.processor_s / whole.processor_s:.0%} of the import's",
                flush=True,
            )


if __name__ == "__main__":
    main()
