import numpy as np
import pytest

from cardiolens.study.times import FirstPass, central_mean, first_pass


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
