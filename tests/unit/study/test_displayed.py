import numpy as np
import pytest
from study_folders import sha256, study, volume, voxels

from cardiolens.config.dataset import Windows
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study

PCT = (1.0, 99.0)
WINDOWS = Windows(pct=PCT)
SLICES, TIMES = 2, 30


def first_pass(sign=1):
    """Two slices over 30 beats; the blood pool fills at 10 and is brightest at 12 to 14."""
    rng = np.random.default_rng(5)
    curve = np.full(TIMES, 100) + np.where(np.arange(TIMES) >= 10, 300, 0)
    curve[12:15] = 700
    stored = rng.integers(0, 20, (8, 8, SLICES, TIMES))
    stored[2:6, 2:6] += curve
    return (sign * stored).astype(np.int16)


def displayed(folder, **changes):
    entry = volume(folder, volume_id="perf_sax", **{"layout": {}, "array": first_pass()} | changes)
    (found,) = displayed_volumes(read_study(study(folder, entry)), WINDOWS)
    return found


def test_a_bolus_is_found_where_contrast_goes_again(tmp_path):
    """Liver and drift brighten more than the heart, and stay so."""
    array = first_pass()
    array[:3] = np.arange(TIMES) * 100 + np.array([[0], [900]])
    found = displayed(tmp_path, array=array)
    assert (found.row["t_on"], found.row["t_peak"]) == (10, 13)
    assert found.found == (
        "perf_sax: t_on is 10 and t_peak 13, measured in the heart, where most contrast washes in and out",
    )


def test_a_series_without_a_bolus_is_reported(tmp_path):
    still = np.random.default_rng(2).integers(0, 900, (8, 8, SLICES, 1)) + np.array([0, 40] * 15)
    found = displayed(tmp_path, array=still.astype(np.int16))
    assert (found.row["t_on"], found.row["t_peak"]) == (0, 10)
    assert found.warnings == ("perf_sax: no_bolus_found: t_on 0, t_peak 10 by default",)


def test_the_slope_of_the_header_turns_a_bolus_over(tmp_path):
    (tmp_path / "a").mkdir()
    entry = volume(tmp_path / "a", first_pass(sign=-1), "perf_sax", layout={}, path="p.nii")
    path = tmp_path / "a" / "p.nii"
    raw = bytearray(path.read_bytes())
    raw[112:116] = np.float32(-1).tobytes()
    path.write_bytes(raw)
    (found,) = displayed_volumes(read_study(study(tmp_path / "a", entry | {"sha256": sha256(path)})), WINDOWS)
    assert (found.row["t_on"], found.row["t_peak"]) == (10, 13)


@pytest.mark.parametrize("volume_id", ["cine_sax", "lge_sax"])
def test_other_sequences_have_no_first_pass(tmp_path, volume_id):
    entry = volume(tmp_path, voxels(12, 1), volume_id, layout={"order": "static"})
    (found,) = displayed_volumes(read_study(study(tmp_path, entry)), WINDOWS)
    assert (found.row["t_on"], found.row["t_peak"]) == (None, None)
    assert found.frames["phase"].to_pylist() == [0] * 12
