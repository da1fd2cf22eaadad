"""Benchmark of preparing against a plain script: `python bench/prepare.py <studies> [gigabytes] [rounds]`.

Copies a folder of studies until it holds so many GB of NIfTI, then prepares the copies in turn with
CardioLens and with a plain script: one process per core that reads, windows, hashes and writes zstd Parquet
and checks almost nothing. Both are warm (cluster started, modules imported) before the first clock starts.
"""

import hashlib
import json
import logging
import multiprocessing
import multiprocessing.pool
import os
import shutil
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.runtime.connect import ray_cluster
from cardiolens.workflow.steps.prepare_studies import prepare

PART_BYTES = 192 << 20  # of pixels per part


def copy_studies(source: Path, target: Path, n_bytes: int) -> int:
    """Copy studies under new ids until their NIfTI files hold so many bytes; return the bytes copied."""
    folders = sorted(path.parent for path in source.glob("*/study.json"))
    copied = round_ = 0
    while copied < n_bytes:
        for folder in folders:
            copy = target / f"{folder.name}-{round_:03d}"
            shutil.copytree(folder, copy, copy_function=shutil.copyfile)
            manifest = json.loads((folder / "study.json").read_text())
            (copy / "study.json").write_text(json.dumps(manifest | {"study_id": copy.name}))
            copied += sum(path.stat().st_size for path in copy.glob("*.nii.gz"))
        round_ += 1
    return copied


def plain_group(folders: list[Path], part: Path) -> None:
    """Write studies to one Parquet file without any check."""
    writer = None
    for folder in folders:
        for volume in json.loads((folder / "study.json").read_text())["volumes"]:
            table = plain_volume(folder, volume)
            writer = writer or pq.ParquetWriter(part, table.schema, compression="zstd", use_dictionary=False)
            writer.write_table(table)
    if writer is not None:
        writer.close()


def plain_volume(folder: Path, volume: dict[str, Any]) -> pa.Table:
    """Table of a volume's windowed frames, in stored order."""
    stored = (folder / str(volume["path"])).read_bytes()
    if hashlib.sha256(stored).hexdigest() != volume["sha256"]:
        raise ValueError(f"{folder}: changed")
    raw = zlib.decompress(stored, 31)
    header = nibabel.Nifti1Header(raw[:348])
    shape = header.get_data_shape()
    frames = np.frombuffer(raw, "<i2", int(np.prod(shape)), int(header["vox_offset"]))
    frames = frames.reshape(-1, shape[1], shape[0])
    lowest = int(frames.min())
    counts = np.zeros(int(frames.max()) - lowest + 1, np.int64)
    for frame in frames:
        counts += np.bincount(np.subtract(frame, lowest, dtype=np.intp).ravel(), minlength=counts.size)
    low, high = np.searchsorted(np.cumsum(counts), [0.01 * frames.size, 0.99 * frames.size])
    grey = np.clip(np.round((np.arange(counts.size) - low) * (255 / (high - low))), 0, 255).astype(np.uint8)
    rows = []
    for idx, frame in enumerate(frames):
        shown = np.take(grey, np.subtract(frame, lowest, dtype=np.intp), mode="clip")
        pixels = (shown if volume["display_transform"]["transpose"] else shown.T).tobytes()
        digest = hashlib.blake2b(pixels, digest_size=16).hexdigest()
        rows.append(
            {
                "study": folder.name,
                "volume": volume["volume_id"],
                "idx": idx,
                "digest": digest,
                "pixels": pixels,
            }
        )
    return pa.Table.from_pylist(rows)


def plain(pool: multiprocessing.pool.Pool, studies: Path, store: Path) -> None:
    """Prepare with the plain script: groups of studies over a pool."""
    store.mkdir()
    groups: list[list[Path]] = [[]]
    filled = 0
    for folder in sorted(studies.iterdir()):
        pixels = sum(
            int(np.prod(v["shape"])) for v in json.loads((folder / "study.json").read_text())["volumes"]
        )
        if groups[-1] and filled + pixels > PART_BYTES:
            groups.append([])
            filled = 0
        groups[-1].append(folder)
        filled += pixels
    jobs = [(group, store / f"{number}.parquet") for number, group in enumerate(groups)]
    pool.starmap(plain_group, jobs, chunksize=1)


def processor_seconds() -> float:
    """Processor seconds of this process and all it started; more reliable than the clock on shared CPUs."""
    ticks = 0.0
    parents: dict[int, int] = {}
    times: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        times[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    for pid, time_ in times.items():
        ancestor = pid
        while ancestor not in (0, os.getpid()):
            ancestor = parents.get(ancestor, 0)
        ticks += time_ if ancestor else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(work: Callable[[Path], object], store: Path) -> tuple[float, float]:
    """Measure wall and processor seconds of one way of preparing into a new store, and remove the store."""
    started, processor = time.perf_counter(), processor_seconds()
    work(store)
    elapsed = time.perf_counter() - started, processor_seconds() - processor
    shutil.rmtree(store)
    return elapsed


def main(source: Path, gigabytes: float = 2.0, rounds: int = 3) -> None:
    """Print the seconds of each round, and the ratios of the medians."""
    logging.basicConfig(level=logging.ERROR)
    cores = os.cpu_count() or 1
    with (
        tempfile.TemporaryDirectory(prefix="cardiolens-bench-") as folder,
        multiprocessing.Pool(cores) as pool,
        ray_cluster(ClusterSpec()),
    ):
        few, many = Path(folder, "few"), Path(folder, "many")
        copy_studies(source, few, cores * PART_BYTES // 4)
        n_bytes = copy_studies(source, many, int(gigabytes * 1e9))
        print(f"{len(list(many.iterdir()))} studies, {n_bytes / 1e9:.2f} GB of NIfTI, {cores} processes")
        ways: dict[str, Callable[[Path, Path], object]] = {"plain": partial(plain, pool), "cardiolens": ours}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for name, way in ways.items():
            measured(partial(way, few), Path(folder, name))
        for _ in range(rounds):
            for name, way in ways.items():
                times[name].append(measured(partial(way, many), Path(folder, name)))
                wall, processor = times[name][-1]
                print(
                    f"{name}: {wall:.1f} s, {n_bytes / 1e6 / wall:.0f} MB/s, processor {processor:.1f} s",
                    flush=True,
                )
    for kind, what in enumerate(("wall", "processor")):
        ours_, plain_ = (statistics.median(t[kind] for t in times[name]) for name in ("cardiolens", "plain"))
        print(f"cardiolens / plain, {what}: {ours_ / plain_:.2f}")


def ours(studies: Path, store: Path) -> None:
    """Prepare with CardioLens."""
    copies = DatasetSpec(name="bench", studies=studies, questions=studies, allow=("same_pixels",))
    prepare(copies, store)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(kind(word) for kind, word in zip((float, int), sys.argv[2:], strict=False)))
