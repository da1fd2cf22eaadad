import numpy as np
import pytest
from study_folders import sha256, study, volume, voxels

from bench.first_pass import NEAR, TRAITS, measured
from cardiolens.config.dataset import Windows
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study
from cardiolens.study.times import FirstPass, central_mean, first_pass

WINDOWS = Windows(pct=(1.0, 99.0))
SLICES, TIMES = 2, 30


def test_onset_and_peak_of_a_bolus():
    # Smoothed: 10 until 7, then 20 40 60 70 (t = 11) ...; the threshold is 10 + 0.2 * 60 = 22.
    curve = [10] * 9 + [40, 70, 70, 70] + [50] * 20
    assert first_pass(curve) == FirstPass(t_on=9, t_peak=11, bolus_found=True)


def test_ends_are_averaged_over_two_points():
    # Smoothed 3, 2, 0, 10, 20, 20, 10, 0, ...: the threshold is 0 + 0.2 * 20 = 4.
    assert first_pass([6, 0, 0, 0, 30, 30, 0, 0, 0, 0]) == FirstPass(t_on=3, t_peak=4, bolus_found=True)


@pytest.mark.parametrize("curve", [[5.0] * 30, [100.0, 110.0] * 15, [7.0]])
def test_without_a_rise_out_of_the_noise_there_is_no_bolus(curve):
    assert first_pass(curve) == FirstPass(0, len(curve) // 3, bolus_found=False)


def test_only_the_central_half_counts():
    frame = np.zeros((8, 12), np.int16)
    frame[2:6, 3:9] = 4
    frame[0, 0] = 1000
    assert central_mean(frame) == 4
    assert central_mean(frame.astype(np.float32)) == 4
    assert central_mean(np.array([[3]])) == 3


@pytest.mark.parametrize("trait", TRAITS)
@pytest.mark.parametrize("number", range(3))
def test_the_peak_is_that_of_the_left_ventricle_or_not_found(trait, number):
    peak, truth = measured(trait, number)
    if truth is None:
        assert peak is None
    else:
        assert peak is not None
        assert abs(peak - truth) <= NEAR


def test_a_first_peak_before_a_slow_rise_without_wash_out_is_not_the_end_of_the_rise():
    """As one real series shows: onset at 6, a peak at 13 that hardly falls, then a slow rise to the end."""
    beats = np.arange(79.0)
    curve = 100 + 300 * np.clip((beats - 6) / 7, 0, 1) - 30 * np.clip((beats - 13) / 3, 0, 1)
    passed = first_pass(list(curve + 1.5 * np.maximum(beats - 20, 0)))
    assert not passed.bolus_found or abs(passed.t_peak - 13) <= 2


def bolus_series(sign=1):
    """Two slices over 30 beats; the blood pool fills at 10 and is brightest at 12 to 14."""
    rng = np.random.default_rng(5)
    curve = np.full(TIMES, 100) + np.where(np.arange(TIMES) >= 10, 300, 0)
    curve[12:15] = 700
    stored = rng.integers(0, 20, (8, 8, SLICES, TIMES))
    stored[2:6, 2:6] += curve
    return (sign * stored).astype(np.int16)


def displayed(folder, **changes):
    entry = volume(folder, volume_id="perf_sax", **{"layout": {}, "array": bolus_series()} | changes)
    (found,) = displayed_volumes(read_study(study(folder, entry)), WINDOWS)
    return found


def test_a_bolus_is_found_where_contrast_goes_again(tmp_path):
    """Liver and drift brighten more than the heart, and stay so."""
    array = bolus_series()
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
    entry = volume(tmp_path / "a", bolus_series(sign=-1), "perf_sax", layout={}, path="p.nii")
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
    assert (found.row["n_slices"], found.row["n_phases"], len(found.frames)) == (12, 1, 12)
