"""What an export lost: phases, beats, slices, images. Nothing of it is silent."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cardiolens.curation.ingest.frame_records import Image
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.series_stacks import stacks_of
from tests.unit.curation.ingest.exports import CINE, NORMAL, PERFUSION, SHORT_AXIS
from tests.unit.curation.ingest.test_other_makers import image

SLICES, PHASES, BEATS = 4, 12, 20
Told = dict[str, object]
Counted = Callable[[int, int], Told]


def frames(folder: Path, phases: int, told: Told, counted: Counted) -> list[Image]:
    """One header of a series, and what counts each of its frames."""
    first = image(folder, ImageOrientationPatient=SHORT_AXIS, SliceThickness=8.0, **told)
    made = []
    for k in range(SLICES):
        for phase in range(phases):
            x, y, z = (float(value) for value in -8.0 * k * NORMAL)
            number = (k * phases + phase + 1) * 100_000
            own = {"position": (x, y, z), "instance_number": number, **counted(k, phase)}
            identity = replace(first.identity, instance=f"{k}-{phase}")
            made.append(replace(first, identity=identity, **own))
    return made


def cine(folder: Path, **fields: object) -> list[Image]:
    """A cine whose slices have heart rates of their own."""
    made = frames(
        folder,
        PHASES,
        {**CINE, "CardiacNumberOfImages": None},
        lambda k, phase: {"trigger": round((4 * k + phase * (66 + k)), 1)},
    )
    return [replace(each, **fields) for each in made]


def first_pass(folder: Path, **fields: object) -> list[Image]:
    """A first pass, with a clock and a temporal position."""
    made = frames(
        folder,
        BEATS,
        {**PERFUSION, "SeriesDescription": "perfusion"},
        lambda k, beat: {
            "temporal": beat + 1,
            "clock": 36_000.2 + 0.81 * beat + 0.2 * k,
            "trigger": 90.0 + 170 * k,
        },
    )
    return [replace(each, **fields) for each in made]


MAKE = {"cine": cine, "first pass": first_pass}


def flags_without(
    made: list[Image], lost: Callable[[int, int], bool]
) -> tuple[set[str], tuple[int, int], list]:
    """Flags and grid of the largest stack without the lost frames, and the frames that are left out."""
    left = [each for each, at in zip(made, _places(made), strict=True) if not lost(*at)]
    stacks, left_out = stacks_of(left)
    stack = max(stacks, key=lambda stack: stack.n_slices * stack.n_phases)
    return set(stack.flags), (stack.n_slices, stack.n_phases), left_out


def _places(made: list[Image]) -> list[tuple[int, int]]:
    phases = len(made) // SLICES
    return [divmod(number, phases) for number in range(len(made))]


def renumbered(made: list[Image]) -> list[Image]:
    """The frames numbered anew, without a word of how many there were."""
    counts: dict[tuple[float, ...], int] = {}
    new = []
    for number, each in enumerate(made, start=1):
        rank = counts[each.position] = counts.get(each.position, 0) + 1
        temporal = None if each.temporal is None else rank
        new.append(
            replace(
                each,
                instance_number=number * 100_000,
                temporal=temporal,
                phases_declared=None,
                temporals_declared=None,
            )
        )
    return new


@pytest.mark.parametrize("kind", MAKE)
def test_a_whole_series_has_no_flag(tmp_path, kind):
    flags, _, left_out = flags_without(MAKE[kind](tmp_path), lambda *_: False)
    assert (flags, left_out) == (set(), [])


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("phase", [0, 5, -1])
def test_a_phase_that_every_slice_lacks_is_told_by_numbers(tmp_path, kind, phase):
    made = MAKE[kind](tmp_path)
    phases = len(made) // SLICES
    flags, (_, count), _ = flags_without(made, lambda _, at: at == phase % phases)
    assert count == phases - 1
    assert flags & {"incomplete"}


@pytest.mark.parametrize("kind", MAKE)
def test_numbered_anew_it_is_told_by_times(tmp_path, kind):
    made = MAKE[kind](tmp_path)
    left = [each for each, (_, phase) in zip(made, _places(made), strict=True) if phase != 5]
    [stack], _ = stacks_of(renumbered(left))
    assert set(stack.flags) & {"incomplete"}
    untold = [replace(each, temporal=None) for each in renumbered(left)]
    [stack], _ = stacks_of(untold)
    assert set(stack.flags) & {"incomplete"}


@pytest.mark.parametrize(
    ("kind", "declared"), [("cine", "phases_declared"), ("first pass", "temporals_declared")]
)
def test_a_last_phase_that_is_lost_is_told_by_the_count(tmp_path, kind, declared):
    made = MAKE[kind](tmp_path)
    phases = len(made) // SLICES
    left = [each for each, (_, phase) in zip(made, _places(made), strict=True) if phase < phases - 1]
    told = [replace(each, **{declared: phases}) for each in renumbered(left)]
    numbered = [
        replace(each, instance_number=again.instance_number)
        for each, again in zip(told, renumbered(left), strict=True)
    ]
    [stack], _ = stacks_of(numbered)
    assert "incomplete" in stack.flags


@pytest.mark.parametrize(("phases", "flags"), [(PHASES, set()), (PHASES - 1, {"incomplete"})])
def test_a_last_phase_is_told_by_the_length_of_a_beat(tmp_path, phases, flags):
    made = [replace(each, beat=PHASES * 67.5) for each in cine(tmp_path)]
    left = [each for each, (_, phase) in zip(made, _places(made), strict=True) if phase < phases]
    [stack], _ = stacks_of(renumbered(left))
    assert set(stack.flags) == flags


def test_a_beat_that_the_scanner_missed_is_no_loss_for_certain(tmp_path):
    made = [
        replace(each, clock=each.clock + (0.81 if each.temporal > 9 else 0)) for each in first_pass(tmp_path)
    ]
    assert flags_without(made, lambda *_: False)[0] == {"incomplete"}


@pytest.mark.parametrize("kind", MAKE)
def test_of_a_slice_that_lacks_a_phase_within_nothing_is_cut_off(tmp_path, kind):
    made = MAKE[kind](tmp_path)
    flags, grid, left_out = flags_without(made, lambda k, phase: (k, phase) == (1, 6))
    assert grid == (SLICES - 1, len(made) // SLICES)
    assert {reason for _, reason, _ in left_out} == {Reason.INCOMPLETE}
    assert "incomplete" in flags


@pytest.mark.parametrize("kind", MAKE)
def test_slices_that_lack_another_phase_each_are_no_volume(tmp_path, kind):
    flags, _, _ = flags_without(MAKE[kind](tmp_path), lambda k, phase: phase == 2 + 2 * k)
    assert "phases_contradicted" in flags


def test_a_last_slice_is_told_by_the_count_of_images(tmp_path):
    made = cine(tmp_path, images_declared=SLICES * PHASES)
    assert "incomplete" in flags_without(made, lambda k, _: k == SLICES - 1)[0]
    whole = cine(tmp_path / "whole", images_declared=SLICES * PHASES)
    assert flags_without(whole, lambda *_: False)[0] == set()


def test_slices_of_an_own_series_that_are_lost_together_are_told(tmp_path):
    made = []
    for each, (k, _) in zip(cine(tmp_path), _places(cine(tmp_path / "again")), strict=True):
        for offset in (0, 6):
            x, y, z = (float(value) for value in -8.0 * (k + offset) * NORMAL)
            identity = replace(
                each.identity, series=f"{k + offset}", instance=f"{each.identity.instance}-{offset}"
            )
            made.append(replace(each, identity=identity, position=(x, y, z), series_number=k + offset))
    stacks, _ = stacks_of(made)
    assert len(stacks) == 2
    assert all("incomplete" in stack.flags for stack in stacks)


def test_every_second_slice_is_told_by_the_declared_distance(tmp_path):
    made = cine(tmp_path, apart=8.0)
    assert "incomplete" in flags_without(made, lambda k, _: k % 2 == 1)[0]
    assert "incomplete" not in flags_without(made, lambda *_: False)[0]


@pytest.mark.parametrize("kind", MAKE)
def test_a_frame_that_is_there_twice_is_taken_once(tmp_path, kind):
    made = MAKE[kind](tmp_path)
    second = replace(made[4], identity=replace(made[4].identity, instance="again"), instance_number=9_900_000)
    stacks, left_out = stacks_of([*made, second])
    [stack] = stacks
    assert (stack.n_slices, stack.n_phases) == (SLICES, len(made) // SLICES)
    assert [reason for _, reason, _ in left_out] == [Reason.REPEAT]
    assert "repeats_left_out" in stack.flags
