"""Selectors that can be compared: one pool, the same borrowed views, the same quotas."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.config.compose import read_spec
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.route import Route, resolve
from cardiolens.protocol.select.selection import Selection
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.structure import StudyStructure, VolumeStructure
from tests.unit.protocol.select.test_properties import study

SUBTASKS = load_catalogue("openprotocol-1").subtasks
CLINICAL = SelectorSpec(name="clinical", kind="clinical")
RANDOM = SelectorSpec(name="random", kind="random", seeds=(2026,))
STRATIFIED = SelectorSpec(name="stratified", kind="stratified", seeds=(2026,))
POOLED = [SelectorSpec(name=kind, kind=kind) for kind in ("uniform", "kcenter", "kmedoids")]
CINE = {"cine_sax": (10, 25), "cine_4ch": (3, 25), "cine_3ch": (1, 25), "cine_2ch": (1, 25)}
STILL = {"lge_sax": (10, 1), "lge_4ch": (1, 1), "lge_2ch": (1, 1), "perf_sax": (3, 50), "t2_sax": (5, 1)}


def whole() -> StudyStructure:
    volumes = {}
    for view, (n_slices, n_phases) in (CINE | STILL).items():
        code, _, short = view.partition("_")
        sequence = "perfusion" if code == "perf" else code
        volumes[view] = VolumeStructure(view, sequence, short, n_slices, n_phases, 0, min(9, n_phases - 1))
    return StudyStructure("PH-0001", volumes)


def features(structure: StudyStructure) -> StudyFeatures:
    rng = np.random.default_rng(1)
    return StudyFeatures(
        {name: rng.random((v.n_frames, 4), np.float32) for name, v in structure.volumes.items()}
    )


def views(selection: Selection) -> Counter[str]:
    return Counter(frame.volume_id for frame in selection.frames)


@given(study(), st.sampled_from(sorted(SUBTASKS)), st.integers(1, 450))
@settings(max_examples=150, deadline=None)
def test_stratified_shows_each_view_as_often_as_clinical(structure, subtask, budget):
    route = Route.of(SUBTASKS[subtask])
    clinical, stratified = (
        choose(selector, seed, structure, route, budget)
        for selector, seed in ((CLINICAL, None), (STRATIFIED, 2026))
    )
    assert views(stratified) == views(clinical)
    assert stratified.skipped == clinical.skipped
    assert len(set(stratified.frames)) == len(stratified.frames)


@given(study(), st.sampled_from(sorted(SUBTASKS)), st.integers(1, 450))
@settings(max_examples=150, deadline=None)
def test_every_selector_chooses_from_one_pool_and_borrows_the_same_views(structure, subtask, budget):
    route = Route.of(SUBTASKS[subtask])
    routed = resolve(tuple(structure.volumes.values()), route)
    pool = {volume.volume_id for volume in routed.volumes}
    available = sum(volume.n_frames for volume in routed.volumes)
    clinical = views(choose(CLINICAL, None, structure, route, budget))
    for selector, seed in ((RANDOM, 2026), (POOLED[0], None)):
        found = views(choose(selector, seed, structure, route, budget))
        assert sum(found.values()) == sum(clinical.values())
        assert {name: count for name, count in found.items() if name not in pool} == {
            name: count for name, count in clinical.items() if name not in pool
        }
        assert available >= budget or found == clinical


def test_where_the_budget_exceeds_the_pool_all_borrow_the_four_chamber_view():
    structure = whole()
    for selector in (CLINICAL, RANDOM, STRATIFIED, *POOLED):
        seed = 2026 if selector.seeds else None
        chosen = choose(
            selector, seed, structure, Route.of(SUBTASKS["C18"]), 64, features=features(structure)
        )
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
