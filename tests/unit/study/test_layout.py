import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_folders import study, volume, voxels

from cardiolens.base.errors import InputError
from cardiolens.study.layout import Layout, even, infer_n_phases, resolve, small
from cardiolens.study.manifest import read_study
from cardiolens.study.volume import read_volume

GRIDS = st.tuples(st.integers(1, 14), st.integers(1, 30))


@st.composite
def layouts(draw):
    n_slices, n_phases = draw(GRIDS)
    order = draw(st.sampled_from(["slice_major", "phase_major", "static", "explicit"]))
    if order == "static":
        return Layout(order, n_slices, 1)
    cells = [(s, p) for s in range(n_slices) for p in range(n_phases)]
    return Layout(
        order, n_slices, n_phases, tuple(draw(st.permutations(cells))) if order == "explicit" else ()
    )


@given(layouts(), st.booleans())
def test_each_canonical_index_names_the_frame_of_its_slice_and_phase(layout, apex_first):
    order = layout.canonical_order(apex_first=apex_first)
    assert sorted(order) == list(range(layout.n_frames))
    for idx, stored in enumerate(order):
        rank, phase = divmod(idx, layout.n_phases)
        assert layout.position(stored) == (layout.n_slices - 1 - rank if apex_first else rank, phase)


@given(layouts())
def test_a_declaration_of_a_layout_resolves_to_it(layout):
    shape = (8, 8, layout.n_frames)
    assert resolve(shape, layout.order, layout.n_slices, layout.n_phases, layout.frames) == layout


def test_the_formulae_of_the_specification():
    assert Layout("slice_major", 10, 25).position(60) == (2, 10)
    assert Layout("phase_major", 10, 25).position(60) == (0, 6)
    assert Layout("static", 10, 1).position(7) == (7, 0)
    assert Layout("slice_major", 3, 2).canonical_order(apex_first=True) == (4, 5, 2, 3, 0, 1)


@pytest.mark.parametrize("order", ["slice_major", "phase_major", "static"])
def test_a_true_fourth_axis_is_the_phase_whatever_the_order_says(order):
    assert resolve((8, 8, 3, 5), order, 3, 5, ()) == Layout("slice_major", 3, 5)


def test_counts_follow_from_the_shape_where_one_is_declared():
    assert resolve((8, 8, 240), "slice_major", 12, None, ()) == Layout("slice_major", 12, 20)
    assert resolve((8, 8, 240), "slice_major", None, 20, ()) == Layout("slice_major", 12, 20)
    assert resolve((8, 8, 240), "slice_major", None, None, ()) is None


@pytest.mark.parametrize(
    ("shape", "order", "n_slices", "n_phases", "expected"),
    [
        ((8, 8, 239), "slice_major", 12, 20, "holds 239 frames; expected n_slices x n_phases = 12 x 20"),
        ((8, 8, 241), "slice_major", 12, None, "holds 241 frames; expected n_slices x n_phases = 12 x 20"),
        ((8, 8, 3, 5), "slice_major", 5, 3, "holds 15 frames; expected n_slices x n_phases = 5 x 3"),
        ((8, 8, 12), "static", 12, 2, "holds 12 frames; expected n_slices x n_phases = 12 x 2"),
        ((8, 8, 4), "slice_major", None, 8, "holds 4 frames; expected n_slices x n_phases = 0 x 8"),
    ],
)
def test_a_mismatch_is_never_truncated(shape, order, n_slices, n_phases, expected):
    with pytest.raises(InputError, match=f"^layout_mismatch: the volume {expected} "):
        resolve(shape, order, n_slices, n_phases, ())


@pytest.mark.parametrize("frames", [((0, 0), (0, 1), (1, 0)), ((0, 0), (0, 1), (1, 0), (1, 0)), ()])
def test_explicit_frames_fill_their_grid_once(frames):
    with pytest.raises(InputError, match=r"^layout_mismatch: layout\.frames holds"):
        resolve((8, 8, 4), "explicit", None, None, frames)


def test_even_gives_the_key_layers_of_the_specification():
    assert {n: even(n, 3) for n in (10, 9, 12, 8, 2, 1)} == {
        10: (1, 5, 8),
        9: (1, 4, 7),
        12: (2, 6, 10),
        8: (1, 4, 6),
        2: (0, 1),
        1: (0,),
    }


@settings(max_examples=80, deadline=None)
@given(
    grid=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    sequence=st.sampled_from(["cine", "lge", "perf", "t2"]),
    counts=st.sets(st.sampled_from(["n_slices", "n_phases"])),
    apex_first=st.booleans(),
    data=st.data(),
)
def test_any_permutation_as_explicit_frames_gives_the_frames_in_that_order(tmp_path_factory, **drawn):
    """With phases and without, whether counts stand beside the frames or not.

    Frames of a volume without phases were once taken as they lie if no count stood beside them.
    """
    grid, sequence, counts, apex_first, data = (
        drawn[name] for name in ("grid", "sequence", "counts", "apex_first", "data")
    )
    n_slices, n_phases = grid
    cells = [(s, p) for s in range(n_slices) for p in range(n_phases)]
    frames = data.draw(st.permutations(cells))
    folder = tmp_path_factory.mktemp("study")
    # the value of each stored frame tells its slice and phase
    array = np.stack([np.full((6, 5), 100 * s + p, np.int16) for s, p in frames], axis=-1)
    changes = {
        "layout": {"order": "explicit", "frames": frames}
        | {name: grid[name == "n_phases"] for name in counts},
        "spatial_order": "apex_to_base" if apex_first else "base_to_apex",
        "confirmed": ["layout"],  # frames of one value look like none of a heart
    }
    take = None
    if sequence in ("lge", "t2") and n_phases > 1:  # several images of each slice
        take = changes["take"] = data.draw(st.integers(0, n_phases - 1))
    entry = volume(folder, array, f"{sequence}_sax", **changes)
    found = read_volume(folder, read_study(study(folder, entry)).manifest.volumes[0])
    phases = range(n_phases) if take is None else [take]
    slices = range(n_slices)[::-1] if apex_first else range(n_slices)
    expected = [100 * s + p for s in slices for p in phases]
    assert [int(found.stored(idx)[0, 0]) for idx in range(found.layout.n_frames)] == expected


FAULTS = [
    ([[0, 0]], r"holds 1 positions for Z = 5"),
    ([[at, 0] for at in range(12)], "holds 12 positions for Z = 5"),
    ([[0, 0], [1, 0], [2, 0], [3, 0], [1, 0]], r"holds \[1, 0\] 2 times"),
    ([[at + 1, 0] for at in range(5)], "holds slices up to 5 and phases up to 0, which is more than Z = 5"),
    ([[0, at + 1] for at in range(5)], "holds slices up to 0 and phases up to 5, which is more than Z = 5"),
    ([], "holds 0 positions for Z = 5"),
]


@pytest.mark.parametrize("sequence", ["cine", "lge", "perf", "t2"])
@pytest.mark.parametrize(("frames", "fault"), FAULTS)
def test_explicit_frames_that_do_not_fit_are_refused(tmp_path, sequence, frames, fault):
    layout = {"order": "explicit", "frames": frames}
    entry = volume(tmp_path, voxels(5, 1), f"{sequence}_sax", layout=layout)
    remedy = "expected each .* of a full grid once, counted from 0; correct layout.frames"
    with pytest.raises(InputError, match=rf"layout_mismatch: layout\.frames {fault}; {remedy}"):
        read_study(study(tmp_path, entry))


@pytest.mark.parametrize(
    "frames", [[[-1, 0]], [[0, -1]], [[0]], [[0, 0, 0]], [[0.5, 0]], [["0", 0]], [0], "00"]
)
def test_explicit_frames_that_are_no_positions_are_refused(tmp_path, frames):
    layout = {"order": "explicit", "frames": frames}
    entry = volume(tmp_path, voxels(1, 1), "lge_sax", layout=layout)
    with pytest.raises(InputError, match=r"volumes\.0\.layout\.frames"):
        read_study(study(tmp_path, entry))


@pytest.mark.parametrize(
    ("sequence", "n_phases", "refused"), [("cine", 1, False), ("cine", 2, True), ("t2", 2, True)]
)
def test_a_spacing_is_taken_from_the_header_if_explicit_frames_are_slices_alone(
    tmp_path, sequence, n_phases, refused
):
    frames = [[s, p] for s in range(4) for p in range(n_phases)]
    layout = {"order": "explicit", "frames": frames}
    more = {"take": 0} if (sequence, n_phases) == ("t2", 2) else {}
    entry = volume(tmp_path, voxels(4, n_phases), f"{sequence}_sax", layout=layout, **more)
    del entry["spacing_mm"]
    if refused:
        with pytest.raises(InputError, match=r"the third axis of .* holds phases too"):
            read_study(study(tmp_path, entry))
    else:
        assert read_study(study(tmp_path, entry)).manifest.volumes[0].spacing_mm == (2.0, 2.0, 10.0)


def test_explicit_frames_of_a_file_with_four_axes_are_refused():
    with pytest.raises(InputError, match=r"the shape .* has a fourth one"):
        resolve((8, 8, 2, 2), "explicit", None, None, ((0, 0), (0, 1), (1, 0), (1, 1)))


EITHER = pytest.mark.parametrize("cyclic", [True, False])


def beating(n_slices, n_phases, noise=0.02):
    """Slices of random anatomy whose frames change smoothly over a cycle."""
    rng = np.random.default_rng(n_slices * 100 + n_phases)
    frames = []
    for _ in range(n_slices):
        rest, motion = rng.random((2, 16, 16))
        for phase in range(n_phases):
            beat = 0.5 - 0.5 * np.cos(2 * np.pi * phase / n_phases)
            frames.append(rest + 0.3 * beat * motion + noise * rng.random((16, 16)))
    return frames


@EITHER
@pytest.mark.parametrize("n_phases", [12, 20, 25, 30])
def test_the_number_of_phases_is_inferred(n_phases, cyclic):
    assert infer_n_phases(beating(10, n_phases), cyclic=cyclic) == n_phases


@EITHER
def test_inference_ignores_the_scale_of_intensities(cyclic):
    assert infer_n_phases([1000 * frame - 5 for frame in beating(4, 20)], cyclic=cyclic) == 20


@EITHER
def test_of_equal_periods_the_smaller_counts(cyclic):
    """Slices at rest change at their ends only: half of the period explains that as well."""
    assert (
        infer_n_phases([np.full((8, 8), s, float) for s in (0, 3, 1, 7) for _ in range(12)], cyclic=cyclic)
        == 6
    )


@EITHER
@pytest.mark.parametrize("frames", [beating(1, 20), list(np.random.default_rng(1).random((60, 8, 8))), []])
def test_what_no_period_explains_is_unresolved(frames, cyclic):
    with pytest.raises(
        InputError, match=r"^layout_unresolved: .* expected layout.n_slices and layout.n_phases"
    ):
        infer_n_phases(frames, cyclic=cyclic)


def test_frames_are_compared_at_64_pixels_or_less():
    frame = np.arange(130 * 70).reshape(130, 70)
    assert small(frame).shape == (43, 23)
    assert small(frame)[0, 0] == frame[:3, :3].mean()
    assert np.array_equal(small(frame[:64, :10]), frame[:64, :10])
    assert small(np.ones((400, 2))).shape == (57, 1)
