"""What an export lost: phases, beats, slices, images. Nothing of it is silent."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cardiolens.curation.ingest.frame_records import Image
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.series_stacks import stacks_of
from tests.unit.curation.ingest.exports import CINE, NORMAL, PERFUSION, SHORT_AXIS
from tests.unit.curation.ingest.test_other_makers import image

SLICES = 4
PHASES = {"cine": 12, "first pass": 20}
TOLD = {
    "cine": {**CINE, "CardiacNumberOfImages": None},
    "first pass": {**PERFUSION, "SeriesDescription": "perfusion"},
}
Made = dict[tuple[int, int], Image]  # by slice and phase


def counted(kind: str, k: int, phase: int) -> dict[str, Any]:
    """What counts a frame: of a cine whose slices have heart rates of their own, or of a first pass."""
    if kind == "cine":
        return {"trigger": round(4 * k + phase * (66 + k), 1)}
    return {"temporal": phase + 1, "clock": 36_000.2 + 0.81 * phase + 0.2 * k, "trigger": 90.0 + 170 * k}


def position(k: int) -> tuple[float, ...]:
    return tuple(float(value) for value in -8.0 * k * NORMAL)


def made_of(folder: Path, kind: str, **fields: Any) -> Made:
    """The frames of a series: one header, with what counts each frame, and `fields`."""
    first = image(folder, ImageOrientationPatient=SHORT_AXIS, SliceThickness=8.0, **TOLD[kind])
    made = {}
    for number in range(SLICES * PHASES[kind]):
        k, phase = divmod(number, PHASES[kind])
        own = {"position": position(k), "instance_number": (number + 1) * 100_000, **counted(kind, k, phase)}
        identity = replace(first.identity, instance=f"{k}-{phase}")
        made[k, phase] = replace(first, identity=identity, **own | fields)
    return made


def without(made: Made, lost: Callable[[int, int], bool]) -> list[Image]:
    return [each for at, each in made.items() if not lost(*at)]


def flags_of(images: Iterable[Image]) -> set[str]:
    """The flags of the largest stack of some frames."""
    stacks, _ = stacks_of(list(images))
    return set(max(stacks, key=lambda stack: stack.n_slices * stack.n_phases).flags)


def renumbered(images: Iterable[Image]) -> list[Image]:
    """The frames numbered anew, without a word of how many there were."""
    ranks: Counter[tuple[float, ...]] = Counter()
    new = []
    for number, each in enumerate(images, start=1):
        ranks[each.position] += 1
        own = {"temporal": each.temporal and ranks[each.position], "instance_number": number * 100_000}
        new.append(replace(each, **own, phases_declared=None, temporals_declared=None))
    return new


@pytest.fixture(params=PHASES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made(kind: str, tmp_path: Path) -> Made:
    return made_of(tmp_path, kind)


def test_a_whole_series_has_no_flag(made):
    assert stacks_of(list(made.values()))[1] == []
    assert flags_of(made.values()) == set()


@pytest.mark.parametrize("phase", [0, 5, -1])
def test_a_phase_that_every_slice_lacks_is_told_by_numbers(made, kind, phase):
    left = without(made, lambda _, at: at == phase % PHASES[kind])
    assert stacks_of(left)[0][0].n_phases == PHASES[kind] - 1
    assert "incomplete" in flags_of(left)


def test_numbered_anew_it_is_told_by_times(made):
    left = renumbered(without(made, lambda _, phase: phase == 5))
    for told in (left, [replace(each, temporal=None) for each in left]):
        [stack], _ = stacks_of(told)
        assert "incomplete" in stack.flags


def test_a_last_phase_that_is_lost_is_told_by_the_count(made, kind):
    declared = {"cine": "phases_declared", "first pass": "temporals_declared"}[kind]
    left = renumbered(without(made, lambda _, phase: phase == PHASES[kind] - 1))
    [stack], _ = stacks_of([replace(each, **{declared: PHASES[kind]}) for each in left])
    assert "incomplete" in stack.flags


@pytest.mark.parametrize(("phases", "flags"), [(12, set()), (11, {"incomplete"})])
def test_a_last_phase_is_told_by_the_length_of_a_beat(tmp_path, phases, flags):
    left = without(made_of(tmp_path, "cine", beat=12 * 67.5), lambda _, phase: phase >= phases)
    [stack], _ = stacks_of(renumbered(left))
    assert set(stack.flags) == flags


def test_a_beat_that_the_scanner_missed_is_no_loss_for_certain(tmp_path):
    made = made_of(tmp_path, "first pass").values()
    missed = [replace(each, clock=each.clock + (0.81 if each.temporal > 9 else 0)) for each in made]
    assert flags_of(missed) == {"incomplete"}


def test_of_a_slice_that_lacks_a_phase_within_nothing_is_cut_off(made, kind):
    left = without(made, lambda k, phase: (k, phase) == (1, 6))
    stacks, left_out = stacks_of(left)
    grids = [(stack.n_slices, stack.n_phases) for stack in stacks]
    assert max(grids, key=lambda grid: grid[0] * grid[1]) == (SLICES - 1, PHASES[kind])
    assert {reason for _, reason, _ in left_out} == {Reason.INCOMPLETE}
    assert "incomplete" in flags_of(left)


def test_slices_that_lack_another_phase_each_are_no_volume(made):
    assert "phases_contradicted" in flags_of(without(made, lambda k, phase: phase == 2 + 2 * k))


def test_a_last_slice_is_told_by_the_count_of_images(tmp_path):
    made = made_of(tmp_path, "cine", images_declared=SLICES * PHASES["cine"])
    assert "incomplete" in flags_of(without(made, lambda k, _: k == SLICES - 1))
    assert flags_of(made.values()) == set()


def test_slices_of_an_own_series_that_are_lost_together_are_told(tmp_path):
    made = []
    for (slice_, _), each in made_of(tmp_path, "cine").items():
        for offset in (0, 6):
            k, own = slice_ + offset, f"{each.identity.instance}-{offset}"
            identity = replace(each.identity, series=f"{k}", instance=own)
            made.append(replace(each, identity=identity, position=position(k), series_number=k))
    stacks, _ = stacks_of(made)
    assert len(stacks) == 2
    assert all("incomplete" in stack.flags for stack in stacks)


def test_every_second_slice_is_told_by_the_declared_distance(tmp_path):
    made = made_of(tmp_path, "cine", apart=8.0)
    assert "incomplete" in flags_of(without(made, lambda k, _: k % 2 == 1))
    assert "incomplete" not in flags_of(made.values())


def test_a_frame_that_is_there_twice_is_taken_once(made, kind):
    again = replace(made[0, 4].identity, instance="again")
    second = replace(made[0, 4], identity=again, instance_number=9_900_000)
    [stack], left_out = stacks_of([*made.values(), second])
    assert (stack.n_slices, stack.n_phases) == (SLICES, PHASES[kind])
    assert [reason for _, reason, _ in left_out] == [Reason.REPEAT]
    assert "repeats_left_out" in stack.flags
