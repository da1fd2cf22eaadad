"""Sweeps that are asked to stop: what is in flight ends and is written, nothing is asked twice."""

import signal
import time

import pytest

from tests.ray.conftest import Place
from tests.ray.processes import command_line, descendants

pytestmark = [pytest.mark.ray, pytest.mark.full]

WORDS = ["name=stopped", "model=[slow]", "selector=[clinical]", "budget=[8]", "tracker=none"]
SECONDS = 2.0  # that the reader takes for an answer


def slow(place: Place, at_once: int = 2) -> Place:
    options = f"engine: uniform\n  options: {{seed: 1, seconds: {SECONDS}}}\n  max_num_seqs: {at_once}"
    place.write_model("slow", f"slow:\n  {options}\n")
    return place


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_one_signal_ends_a_sweep_in_good_order(place: Place, number: signal.Signals) -> None:
    running = slow(place).start(*WORDS)
    while not place.keys("slow"):
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    running.send_signal(number)
    printed, _ = running.communicate(timeout=600)
    assert running.returncode == 75, printed
    assert "requests in flight may end" in printed
    before = place.keys("slow")
    assert len(before) < 100
    slow(place, 256).sweep(*WORDS)
    keys = place.keys("slow")
    assert len(keys) == len(set(keys)) > len(before)


@pytest.mark.long
def test_a_signal_while_ray_starts_is_heard(place: Place) -> None:
    running = slow(place).start(*WORDS)
    while not any("gcs_server" in command_line(pid) for pid in descendants(running.pid)):
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    printed, _ = running.communicate(timeout=600)
    assert running.returncode == 75, printed
    assert "stopped before Ray had started" in printed


@pytest.mark.long
def test_a_second_interrupt_ends_at_once(place: Place) -> None:
    running = slow(place).start(*WORDS, "model.slow.options.seconds=60")
    deadline = time.monotonic() + 1500
    while "requests to execute" not in running.stdout.readline():
        assert time.monotonic() < deadline
    time.sleep(5)
    running.send_signal(signal.SIGINT)
    time.sleep(1)
    began = time.monotonic()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=600)
    assert running.returncode not in (0, 75)
    assert time.monotonic() - began < 20
