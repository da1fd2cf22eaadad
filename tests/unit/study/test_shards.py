import os
import resource
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import pyarrow as pa
import pytest
from study_folders import WINDOWS, published, study, volume, voxels

from cardiolens.base.errors import InputError, RunError
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import read_cohort, write_cohort
from cardiolens.study.group import prepare_group
from cardiolens.study.shards import (
    FrameParts,
    pixel_digest,
    places_of,
    read_frames,
    read_volumes,
)
from cardiolens.study.structure import structures


@pytest.fixture
def store(tmp_path):
    """Two studies: S1 with a cine stack and a 4CH view, S2 with a cine stack."""
    one = tmp_path / "in" / "S1"
    study(
        one,
        volume(one),
        volume(one, voxels(1, 12, seed=3), "cine_4ch", layout={"n_slices": 1, "n_phases": 12}),
    )
    two = study(tmp_path / "in" / "S2")
    published(tmp_path / "store", [two, one])
    return tmp_path / "store"


def of_study(store, study_id):
    volumes = read_volumes(store)
    return volumes.filter(pa.compute.equal(volumes["study_id"], study_id))


def test_the_digest_of_a_frame_is_over_its_shape_and_pixels():
    # Computed with: printf '2,3,1:\x00\x01\x02\x03\x04\x05' | b2sum -l 128
    assert pixel_digest(bytes(range(6)), 2, 3, 1) == "cb34b8f8945f268ae5eeff65b81813fc"
    assert pixel_digest(bytes(range(6)), 3, 2, 1) != pixel_digest(bytes(range(6)), 2, 3, 1)


def test_volumes_are_read_in_order_with_their_structure(store):
    volumes = read_volumes(store)
    assert volumes.schema.equals(schemas.VOLUMES)
    assert volumes["study_id"].to_pylist() == ["S1", "S1", "S2"]
    assert volumes["volume_id"].to_pylist() == ["cine_4ch", "cine_sax", "cine_sax"]
    assert volumes["patient_id"].to_pylist() == ["patient-S1", "patient-S1", "patient-S2"]
    assert volumes["row_group"].to_pylist() == [2, 1, 0]
    sax = structures(volumes)["S1"].volumes["cine_sax"]
    assert (sax.n_slices, sax.n_phases, sax.es_phase, sax.key_layers) == (3, 4, 1, (0, 1, 2))


def test_digests_are_those_of_the_pixels(store):
    volumes = of_study(store, "S1")
    digests = FrameParts(store).digests(volumes)
    assert len(digests) == 24
    frames = read_frames(store, volumes, {"cine_sax": range(12), "cine_4ch": range(12)})
    assert len(frames) == 24
    for row in frames:
        assert list(row) == [name for name in schemas.FRAMES.names if name not in ("slice", "phase")]
        assert digests[row["volume_id"], row["idx"]] == (row["digest"], 6, 5)
        assert pixel_digest(row["pixels"], row["height"], row["width"], row["channels"]) == row["digest"]


def test_a_frame_has_the_slice_and_phase_of_its_index(store):
    columns = ("volume_id", "idx", "slice", "phase")
    n_phases = {"cine_sax": 4, "cine_4ch": 12}
    for row in tables.read(store / "frames", schemas.FRAMES, columns).to_pylist():
        assert (row["slice"], row["phase"]) == divmod(row["idx"], n_phases[row["volume_id"]])


def test_only_the_wanted_frames_are_read_in_order(store):
    frames = read_frames(store, of_study(store, "S1"), {"cine_sax": [7, 2, 7], "cine_4ch": []})
    assert [(row["volume_id"], row["idx"]) for row in frames] == [("cine_sax", 2), ("cine_sax", 7)]
    assert read_frames(store, of_study(store, "S1"), {}) == []


def test_studies_read_in_turn_are_those_read_alone(store):
    volumes = {name: of_study(store, name) for name in ("S1", "S2")}
    asked = [
        ("S1", {"cine_4ch": [3, 1], "cine_sax": range(12)}),
        ("S2", {}),
        ("S2", {"cine_sax": [11, 0]}),
        ("S2", {"cine_sax": [11, 0]}),
        ("S1", {"cine_sax": [4]}),
    ]
    parts = FrameParts(store)
    together = [parts.frames(places_of(volumes[name]), of) for name, of in asked]
    assert together == [read_frames(store, volumes[name], of) for name, of in asked]
    assert [[row["idx"] for row in rows] for rows in together[1:]] == [[], [0, 11], [0, 11], [4]]
    assert {row["study_id"] for row in together[4]} == {"S1"}


def test_a_frame_or_volume_that_is_not_there_is_an_error(store):
    with pytest.raises(InputError, match=r"^cine_sax: no frame 12; expected idx in 0\.\.11"):
        read_frames(store, of_study(store, "S1"), {"cine_sax": [12]})
    with pytest.raises(InputError, match=r"no volume \['lge_sax'\] in the prepared study"):
        read_frames(store, of_study(store, "S1"), {"lge_sax": [0]})


def test_a_store_without_a_cohort_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"holds no prepared studies; run python -m cardiolens.prepare"):
        read_volumes(tmp_path)


@pytest.mark.parametrize("table", ["frames", "volumes"])
def test_a_part_that_is_gone_is_an_error(store, table):
    volumes = of_study(store, "S1")
    (store / table / "part-1.parquet").unlink()
    with pytest.raises(InputError, match=r"part-1.parquet: .*not .*whole.* again$"):
        read_frames(store, volumes, {"cine_sax": [0]}) if table == "frames" else read_volumes(store)


def test_rows_of_replaced_studies_are_ignored(store, tmp_path):
    changed = study(tmp_path / "in" / "S2", volume(tmp_path / "in" / "S2", voxels(seed=9)))
    outcomes = prepare_group(store, "part-2.parquet", [changed], WINDOWS)
    old = read_volumes(store)
    kept = read_cohort(store)
    records = {**kept.studies, "S2": outcomes[0].record}
    write_cohort(store, kept.model_copy(update={"studies": records}))
    new = read_volumes(store)
    assert new["study_id"].to_pylist() == old["study_id"].to_pylist()
    assert new["part"].to_pylist() == ["part-1.parquet", "part-1.parquet", "part-2.parquet"]
    assert new["source_sha256"][2] != old["source_sha256"][2]


KILLED = """
import os, signal, sys
from pathlib import Path
from cardiolens.study import group
from cardiolens.study.shards import PartWriter

store, folders, row_groups = Path(sys.argv[1]), [Path(arg) for arg in sys.argv[3:]], int(sys.argv[2])
write = PartWriter.write

def write_until(self, row, frames):
    written = write(self, row, frames)
    if row_groups == self._row_groups:
        os.kill(os.getpid(), signal.SIGKILL)
    return written

PartWriter.write = write_until
from cardiolens.config.dataset import Windows
group.prepare_group(store, "part-2.parquet", folders, Windows(pct=(1.0, 99.0)))
"""


def test_a_killed_writer_leaves_the_store_as_it_was(store, tmp_path):
    before = read_volumes(store)
    more = [study(tmp_path / "more" / name) for name in ("S3", "S4")]
    command = [sys.executable, "-c", textwrap.dedent(KILLED), store, "2", *more]
    killed = subprocess.run(
        list(map(str, command)), check=False, env=os.environ | {"PYTHONPATH": os.getcwd()}
    )
    assert killed.returncode == -signal.SIGKILL
    assert read_volumes(store).equals(before)
    assert [path.name for path in tables.parts(store / "frames")] == ["part-1.parquet"]


@contextmanager
def full_disk():
    """Files cannot grow beyond 1000 bytes, as on a full disk; pytest itself could not report for longer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_error_and_leaves_nothing(store, tmp_path):
    more = study(tmp_path / "S3")
    expected = pytest.raises(RunError, match=r"frames/part-2.parquet: cannot be written .* free space")
    with expected, full_disk():
        prepare_group(store, "part-2.parquet", [more], WINDOWS)
    assert [path.name for path in (store / "frames").iterdir()] == ["part-1.parquet"]
