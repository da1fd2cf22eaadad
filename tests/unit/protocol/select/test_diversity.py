"""Data-driven selection: the check of section 6, plain definitions, features, their store and their order."""

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import (
    StudyFeatures,
    missing_parts,
    read_features,
    write_features,
)
from cardiolens.protocol.select.features import (
    distances,
    kcenter,
    kmedoids,
    small_pictures,
    volume_features,
)
from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.storage import schemas, tables
from cardiolens.study.shards import frames_table, part_writer
from cardiolens.study.structure import StudyStructure, VolumeStructure

N_FEATURES = 32 * 32 + 4 * 4 * 8 + 2 * 4 * 4
LINE = np.array([[0], [1], [2], [10], [11], [20]], np.float64)
SAX = VolumeStructure("cine_sax", "cine", "sax", 3, 8, 0, 3, (0, 1, 2))
FOUR = VolumeStructure("cine_4ch", "cine", "4ch", 1, 8, 0, 3)
STUDY = StudyStructure("PH-0001", {"cine_sax": SAX, "cine_4ch": FOUR})
SUBTASK = Subtask("C12", 1, "cine", "", "", "single", (("cine_4ch", 1), ("cine_sax", 1)), "")


def selector(kind: str, **options: object) -> SelectorSpec:
    return SelectorSpec(name=kind, kind=kind, **options)


def features(seed: int = 0) -> StudyFeatures:
    dice = np.random.default_rng(seed)
    pixels = {v.volume_id: dice.integers(0, 256, (v.n_frames, 40, 50), np.uint8) for v in (SAX, FOUR)}
    return StudyFeatures({name: volume_features(frames, 8, cyclic=True) for name, frames in pixels.items()})


def test_kcenter_takes_the_medoid_then_the_farthest():
    assert kcenter(distances(LINE), 3) == [2, 5, 4]
    assert kcenter(distances(LINE), 99) == [2, 5, 4, 0, 1, 3]


def test_distances_of_equal_frames_are_zero():
    rows = np.repeat(np.random.default_rng(1).random((20, N_FEATURES)), 2, axis=0)
    found = distances(rows)
    assert all(found[2 * i, 2 * i + 1] == 0 for i in range(20))
    expected = np.linalg.norm(rows[:, None] - rows, axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def slow_kmedoids(distance, k):
    def cost(medoids):
        return distance[:, medoids].min(axis=1).sum()

    chosen = sorted(kcenter(distance, k))
    for _ in range(20):
        others = [h for h in range(len(distance)) if h not in chosen]
        swaps = [(h, place) for h in others for place in range(k)]
        gains = [cost(chosen) - cost([*chosen[:place], h, *chosen[place + 1 :]]) for h, place in swaps]
        if not gains or max(gains) <= 1e-9:
            break
        frame, place = swaps[next(i for i, gain in enumerate(gains) if gain >= max(gains) - 1e-9)]
        chosen[place] = frame
        chosen.sort()
    return chosen


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=14), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_kmedoids_is_the_slow_definition(points, k):
    distance = distances(np.array(points, np.float64))
    assert kmedoids(distance, min(k, len(points))) == slow_kmedoids(distance, min(k, len(points)))


def test_features_have_three_blocks_of_unit_length():
    frames = np.random.default_rng(2).integers(0, 256, (6, 48, 64), np.uint8)
    moving = volume_features(frames, 3, cyclic=True)
    assert moving.shape == (6, N_FEATURES)
    for block in (moving[:, :1024], moving[:, 1024:1152], moving[:, 1152:]):
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1, rtol=1e-6)
    assert not volume_features(frames, 1, cyclic=False)[:, 1152:].any()


def test_small_pictures_are_area_means_of_the_central_square():
    frames = np.zeros((1, 100, 200), np.uint8)
    frames[:, :, 100:] = 200  # the square is 70 x 70 pixels about the middle
    np.testing.assert_array_equal(small_pictures(frames)[0, :, :16], 0)
    np.testing.assert_array_equal(small_pictures(frames)[0, :, 16:], 200)
    dice = np.random.default_rng(3).integers(0, 256, (1, 64, 64), np.uint8)
    inner = dice[0, 10:54, 10:54].astype(float)  # 44.8 pixels: a border of 0.4 of a pixel is left out
    assert abs(small_pictures(dice).mean() - inner.mean()) < 2


@pytest.mark.parametrize(("degrees", "direction"), [(0, 0), (15, 0), (-15, 0), (45, 1), (90, 2), (180, 4)])
def test_a_gradient_has_the_direction_in_which_it_brightens(degrees, direction):
    y, x = np.mgrid[-50:50, -50:50]
    ramp = 128 + 1.5 * (x * np.cos(np.radians(degrees)) + y * np.sin(np.radians(degrees)))
    histogram = volume_features(ramp.round().astype(np.uint8)[None], 1, cyclic=False)[0, 1024:1152]
    by_direction = histogram.reshape(16, 8).sum(axis=0)
    assert by_direction.argmax() == direction
    assert by_direction[direction] > 0.99 * by_direction.sum()


@pytest.mark.parametrize("kind", ["kcenter", "kmedoids"])
def test_data_driven_selection_ignores_the_order_of_volumes(kind):
    turned = replace(SUBTASK, route=tuple(reversed(SUBTASK.route)))
    one = choose(selector(kind), None, STUDY, SUBTASK, 6, features=features())
    other = choose(selector(kind), None, STUDY, turned, 6, features=features())
    assert set(one.frames) == set(other.frames)
    assert len(one.frames) == 6
    assert [frame.volume_id for frame in one.frames] == sorted(frame.volume_id for frame in one.frames)
    more = choose(selector(kind), None, STUDY, SUBTASK, 99, features=features())
    assert len(more.frames) == 32
    assert "short" in more.flags


@pytest.mark.parametrize("volume", [SAX, FOUR])
def test_frames_of_one_volume_are_picked_by_their_own_distances(volume):
    dice = np.random.default_rng(7)
    vectors = {v.volume_id: dice.random((v.n_frames, 4), np.float32) for v in (SAX, FOUR)}
    picked = StudyFeatures(vectors).picked("kcenter", (volume,), 3)
    assert [frame.idx for frame in picked] == kcenter(distances(vectors[volume.volume_id]), 3)


def test_uniform_and_all_are_plain():
    uniform = choose(selector("uniform"), None, STUDY, SUBTASK, 4)
    assert [(frame.volume_id, frame.idx) for frame in uniform.frames] == [
        ("cine_4ch", 4),
        ("cine_sax", 4),
        ("cine_sax", 12),
        ("cine_sax", 20),
    ]
    everything = choose(selector("all"), None, STUDY, SUBTASK, 4)
    assert len(everything.frames) == 32
    assert "short" not in everything.flags


@pytest.mark.parametrize("kind", ["random", "kcenter", "uniform"])
def test_nested_order_puts_smaller_budgets_in_front_where_they_are_contained(kind):
    chooses = selector(kind, order="nested", seeds=(1,) if kind == "random" else ())
    plain = selector(kind, seeds=(1,) if kind == "random" else ())
    seed, looked = (1 if kind == "random" else None), features()
    shown = {k: choose(chooses, seed, STUDY, SUBTASK, k, features=looked).frames for k in (3, 8, 12, 16, 32)}
    for k, frames in shown.items():
        assert set(frames) == set(choose(plain, seed, STUDY, SUBTASK, k, features=looked).frames)
    if kind != "uniform":
        assert shown[16][:8] == shown[8]
        assert shown[12][:8] == shown[8]
    assert shown[3] == choose(plain, seed, STUDY, SUBTASK, 3, features=looked).frames


def test_features_beside_the_shards_are_those_of_the_frames(tmp_path):
    dice = np.random.default_rng(5)
    pixels = {v.volume_id: dice.integers(0, 256, (v.n_frames, 20, 24), np.uint8) for v in (SAX, FOUR)}
    part = "part-1.parquet"
    with part_writer(tmp_path, part) as writer:
        for study_id in ("PH-0000", "PH-0001"):  # the other one shows the same frames the other way round
            for name, own in pixels.items():
                about = {"study_id": study_id, "volume_id": name, "sequence": "cine", "n_phases": 8}
                frames = own if study_id == STUDY.study_id else own[::-1]
                writer.rows.append(writer.write(about, frames_table(about, frames)))
    volumes = tables.read(tmp_path / "volumes", schemas.VOLUMES)
    volumes = volumes.filter(pc.equal(volumes["study_id"], STUDY.study_id))
    assert missing_parts(tmp_path, volumes) == [part]
    with pytest.raises(InputError, match=r"features of the frames are missing"):
        read_features(tmp_path, volumes)
    write_features(tmp_path, part)
    assert missing_parts(tmp_path, volumes) == []
    direct = StudyFeatures({name: volume_features(px, 8, cyclic=True) for name, px in pixels.items()})
    for budget in (1, 7):
        stored = choose(
            selector("kcenter"), None, STUDY, SUBTASK, budget, features=read_features(tmp_path, volumes)
        )
        assert stored == choose(selector("kcenter"), None, STUDY, SUBTASK, budget, features=direct)
