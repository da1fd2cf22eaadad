"""What holds for every study, subtask and budget; selectors can be compared."""

from dataclasses import fields

import numpy as np
import selected
from hypothesis import given, settings
from hypothesis import strategies as st
from selected import CLINICAL, RANDOM, SEQUENCES, SUBTASKS, views

from cardiolens.config.compose import read_spec
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.selection import resolve
from cardiolens.study.structure import StudyStructure, VolumeStructure

VIEWS = [
    *("cine_sax", "cine_4ch", "cine_3ch", "cine_2ch"),
    *("lge_sax", "lge_4ch", "lge_2ch", "lge_3ch", "perf_sax", "t2_sax", "t2_4ch"),
]


@st.composite
def volume(draw, view):
    code, _, short = view.partition("_")
    n_phases = 1 if code in ("lge", "t2") else draw(st.integers(1, 30))
    ed = 0 if code != "cine" else draw(st.integers(0, n_phases - 1))
    es = (ed + round(0.37 * n_phases)) % n_phases
    t_on = draw(st.integers(0, n_phases - 1))
    t_peak = draw(st.integers(t_on, n_phases - 1))
    n_slices = draw(st.integers(1, 12))
    return VolumeStructure(view, SEQUENCES[code], short, n_slices, n_phases, ed, es, t_on=t_on, t_peak=t_peak)


@st.composite
def study(draw):
    present = draw(st.lists(st.sampled_from(VIEWS), min_size=1, unique=True))
    return StudyStructure(draw(st.sampled_from(["PH-0001", "s"])), {v: draw(volume(v)) for v in present})


subtasks = st.sampled_from(sorted(SUBTASKS))


@given(study(), subtasks, st.integers(1, 450))
@settings(max_examples=300, deadline=None)
def test_the_budget_is_spent_and_no_frame_is_shown_twice(structure, subtask, budget):
    asked = SUBTASKS[subtask]
    for selector, seed in ((CLINICAL, None), (RANDOM, 2026)):
        selection = choose(selector, seed, structure, asked, budget)
        if selection.skipped is not None:
            continue
        names = {frame.volume_id for frame in selection.frames}
        available = sum(structure.volumes[name].n_frames for name in names)
        assert len(selection.frames) <= budget
        assert len(selection.frames) == budget or (
            "short" in selection.flags and len(selection.frames) == available
        )
        assert len({(frame.volume_id, frame.idx) for frame in selection.frames}) == len(selection.frames)
        for frame in selection.frames:
            shape = structure.volumes[frame.volume_id]
            assert 0 <= frame.slice < shape.n_slices
            assert 0 <= frame.phase < shape.n_phases
            assert frame.idx == frame.slice * shape.n_phases + frame.phase


@given(study(), subtasks, st.integers(1, 200), st.integers(0, 200), st.sampled_from(["routed", "sequence"]))
@settings(max_examples=200, deadline=None)
def test_random_draws_are_nested_in_the_budget(structure, subtask, budget, more, pool):
    selector = SelectorSpec(name="random", kind="random", seeds=(7,), pool=pool)
    asked = SUBTASKS[subtask]
    smaller = choose(selector, 7, structure, asked, budget)
    larger = choose(selector, 7, structure, asked, budget + more)
    assert set(smaller.frames) <= set(larger.frames)
    shared = [frame for frame in larger.frames if frame in set(smaller.frames)]
    assert tuple(shared) == smaller.frames


@given(study(), subtasks, st.integers(1, 64))
@settings(max_examples=100, deadline=None)
def test_the_order_of_volumes_in_a_study_does_not_matter(structure, subtask, budget):
    reversed_volumes = dict(reversed(structure.volumes.items()))
    turned = StudyStructure(structure.study_id, reversed_volumes)
    asked = SUBTASKS[subtask]
    for selector, seed in ((CLINICAL, None), (RANDOM, 2026)):
        assert choose(selector, seed, structure, asked, budget) == choose(
            selector, seed, turned, asked, budget
        )


def test_a_selector_is_given_nothing_that_could_hold_a_label():
    assert {field.name for field in fields(StudyStructure)} == {"study_id", "volumes"}
    assert {field.name for field in fields(VolumeStructure)} == {
        *("volume_id", "sequence", "view", "n_slices", "n_phases", "ed_phase", "es_phase"),
        *("key_layers", "levels_known", "t_on", "t_peak"),
        "anatomy",  # of the protocol: the same for every study
    }


STRATIFIED = SelectorSpec(name="stratified", kind="stratified", seeds=(2026,))
POOLED = [SelectorSpec(name=kind, kind=kind) for kind in ("uniform", "kcenter", "kmedoids")]


def features(structure: StudyStructure) -> StudyFeatures:
    rng = np.random.default_rng(1)
    return StudyFeatures(
        {name: rng.random((v.n_frames, 4), np.float32) for name, v in structure.volumes.items()}
    )


@given(study(), st.sampled_from(sorted(SUBTASKS)), st.integers(1, 450))
@settings(max_examples=150, deadline=None)
def test_stratified_shows_each_view_as_often_as_clinical(structure, subtask, budget):
    asked = SUBTASKS[subtask]
    clinical, stratified = (
        choose(selector, seed, structure, asked, budget)
        for selector, seed in ((CLINICAL, None), (STRATIFIED, 2026))
    )
    assert views(stratified) == views(clinical)
    assert stratified.skipped == clinical.skipped
    assert len(set(stratified.frames)) == len(stratified.frames)


@given(study(), st.sampled_from(sorted(SUBTASKS)), st.integers(1, 450))
@settings(max_examples=150, deadline=None)
def test_every_selector_chooses_from_one_pool_and_borrows_the_same_views(structure, subtask, budget):
    asked = SUBTASKS[subtask]
    routed = resolve(tuple(structure.volumes.values()), asked)
    pool = {volume.volume_id for volume in routed.volumes}
    available = sum(volume.n_frames for volume in routed.volumes)
    clinical = views(choose(CLINICAL, None, structure, asked, budget))
    for selector, seed in ((RANDOM, 2026), (POOLED[0], None)):
        found = views(choose(selector, seed, structure, asked, budget))
        assert sum(found.values()) == sum(clinical.values())
        assert {name: count for name, count in found.items() if name not in pool} == {
            name: count for name, count in clinical.items() if name not in pool
        }
        assert available >= budget or found == clinical


def test_where_the_budget_exceeds_the_pool_all_borrow_the_four_chamber_view():
    structure = selected.study(*selected.SHAPES)
    for selector in (CLINICAL, RANDOM, STRATIFIED, *POOLED):
        seed = 2026 if selector.seeds else None
        chosen = choose(selector, seed, structure, SUBTASKS["C18"], 64, features=features(structure))
        assert views(chosen) == {"cine_3ch": 25, "cine_4ch": 39}, selector.name
        assert {frame.step for frame in chosen.frames if frame.volume_id == "cine_4ch"} == {4}
        assert "short" not in chosen.flags


def test_the_experiments_compare_fairly():
    ablation = read_spec(["+experiment=slice_ablation"])
    assert [selector.name for selector in ablation.selector] == [
        *("clinical", "stratified", "random", "kmedoids"),
    ]
    assert {selector.seeds for selector in ablation.selector} == {(), (2026,)}
    seeds = read_spec(["+experiment=seeds"])
    assert {selector.name: selector.seeds for selector in seeds.selector} == {
        name: (2026, 2027, 2028, 2029, 2030) for name in ("stratified", "random")
    }
    assert (len(seeds.budget), len(seeds.prompt)) == (1, 1)
