"""What holds for every study, subtask and budget."""

from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.route import Route
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.structure import StudyStructure, VolumeStructure

SUBTASKS = load_catalogue("openprotocol-1").subtasks
CLINICAL = SelectorSpec(name="clinical", kind="clinical")
RANDOM = SelectorSpec(name="random", kind="random", seeds=(2026,))
SEQUENCES = {"cine": "cine", "lge": "lge", "perf": "perfusion", "t2": "t2"}
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
    route = Route.of(SUBTASKS[subtask])
    for selector, seed in ((CLINICAL, None), (RANDOM, 2026)):
        selection = choose(selector, seed, structure, route, budget)
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
    route = Route.of(SUBTASKS[subtask])
    smaller = choose(selector, 7, structure, route, budget)
    larger = choose(selector, 7, structure, route, budget + more)
    assert set(smaller.frames) <= set(larger.frames)
    shared = [frame for frame in larger.frames if frame in set(smaller.frames)]
    assert tuple(shared) == smaller.frames


@given(study(), subtasks, st.integers(1, 64))
@settings(max_examples=100, deadline=None)
def test_the_order_of_volumes_in_a_study_does_not_matter(structure, subtask, budget):
    reversed_volumes = dict(reversed(structure.volumes.items()))
    turned = StudyStructure(structure.study_id, reversed_volumes)
    route = Route.of(SUBTASKS[subtask])
    for selector, seed in ((CLINICAL, None), (RANDOM, 2026)):
        assert choose(selector, seed, structure, route, budget) == choose(
            selector, seed, turned, route, budget
        )


def test_a_selector_is_given_nothing_that_could_hold_a_label():
    assert {field.name for field in fields(StudyStructure)} == {"study_id", "volumes"}
    assert {field.name for field in fields(VolumeStructure)} == {
        *("volume_id", "sequence", "view", "n_slices", "n_phases", "ed_phase", "es_phase"),
        *("key_layers", "levels_known", "t_on", "t_peak"),
        "anatomy",  # of the protocol: the same for every study
    }
    assert {field.name for field in fields(Route)} == {
        *("subtask", "sequence", "views", "temporal", "readable_on", "only_routed"),
    }
