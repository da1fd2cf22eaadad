"""Where and when models run: laws that hold on any cluster, and places and times worked out by hand."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.inference.placement.footprint import Candidate, Node, footprints, most_seconds, work_seconds
from cardiolens.inference.placement.placement import Placement, Seating, place
from cardiolens.inference.stream.execution import Span, seconds_of_loading
from tests.unit.clusters import EIGHT, TWICE_EIGHT, candidates, model, nodes


def shapes(placement: Placement) -> list[dict[str, tuple[int, int]]]:
    """By wave and model: tensor parallel size and replicas."""
    return [
        {group.model: (group.tensor_parallel, group.replicas) for group in wave} for wave in placement.waves
    ]


@settings(max_examples=80, deadline=None)
@given(nodes, candidates())
def test_every_model_is_refused_with_a_reason_or_placed_once_where_it_fits(nodes, candidates):
    placement = place(nodes, candidates)
    named = Counter(group.model for group in placement.deployments)
    named.update(list(placement.refusals))
    assert named == Counter(one.name for one in candidates)
    assert all(name in reason for name, reason in placement.refusals.items())
    memory = {node.name: node.gpu_memory_gib for node in nodes}
    weights = {one.name: one.weight_gib for one in candidates}
    for wave in placement.waves:
        taken: Counter[str] = Counter()
        for group in wave:
            assert group.reason
            held = weights[group.model] / (group.tensor_parallel * group.pipeline_parallel)
            for hosts in group.hosts:
                assert len(hosts) == group.pipeline_parallel
                assert held <= 0.85 * group.utilization * min(memory[host] for host in hosts) + 1e-6
                taken.update({host: group.tensor_parallel * hosts.count(host) for host in set(hosts)})
        assert all(taken[node.name] <= node.gpus + 1e-6 for node in nodes)


@settings(max_examples=60, deadline=None)
@given(nodes, candidates())
def test_no_gpu_idles_while_a_model_that_fits_waits(nodes, candidates):
    """Every model of a later wave is tried on the GPUs that each earlier wave leaves free."""
    placement = place(nodes, candidates)
    known = {one.name: one for one in candidates}
    for at, wave in enumerate(placement.waves):
        free = Counter({node.name: node.gpus for node in nodes})
        for group in wave:
            for hosts in group.hosts:
                for host in hosts:
                    free[host] -= group.tensor_parallel
        left = [Node(node.name, max(0, free[node.name]), node.gpu_memory_gib) for node in nodes]
        for later in placement.waves[at + 1 :]:
            for group in later:
                ways = footprints(known[group.model], nodes)
                assert not any(Seating(left).seat(way) for way in ways)


@settings(max_examples=40, deadline=None)
@given(nodes, candidates(), st.randoms(use_true_random=False))
def test_the_order_in_which_models_and_nodes_are_given_changes_nothing(nodes, candidates, random):
    shuffled, turned = list(candidates), list(nodes)
    random.shuffle(shuffled)
    random.shuffle(turned)
    assert place(nodes, candidates) == place(turned, shuffled)


PLACED = {
    "a model alone fills the cluster with replicas": (EIGHT, [model("a", 16.0)], [{"a": (1, 8)}]),
    "of several GPUs each, too": (TWICE_EIGHT, [model("a", 131.0)], [{"a": (4, 4)}]),
    "no more replicas than studies": (EIGHT, [model("a", 16.0, studies=3)], [{"a": (1, 3)}]),
    "no more than declared": (EIGHT, [model("a", 16.0, replicas=2)], [{"a": (1, 2)}]),
    "short work side by side, since loading weighs most": (
        EIGHT,
        [model(name, 16.0, prompt_tokens=10**6) for name in "abc"],
        [{"a": (1, 3), "b": (1, 3), "c": (1, 2)}],
    ),
    "long work has the cluster to itself": (
        EIGHT,
        [model("short", 16.0), model("long", 16.0, prompt_tokens=10**9)],
        [{"long": (1, 8)}, {"short": (1, 8)}],
    ),
    "a model that cannot fill the cluster is not alone": (
        EIGHT,
        [model("long", 131.0, prompt_tokens=10**9, replicas=1), model("short", 16.0)],
        [{"long": (4, 1), "short": (1, 4)}],
    ),
}


@pytest.mark.parametrize(("nodes", "candidates", "waves"), PLACED.values(), ids=PLACED)
def test_models_share_a_cluster_so(nodes, candidates, waves):
    assert shapes(place(nodes, candidates)) == waves


def test_nodes_are_spanned_only_where_one_is_too_small():
    (group,) = place(TWICE_EIGHT, [model("huge", 700.0)]).waves[0]
    assert (group.tensor_parallel, group.pipeline_parallel, group.hosts) == (8, 2, (("a", "b"),))
    assert "exceed every node" in group.reason
    (within,) = place(TWICE_EIGHT, [model("large", 440.0)]).waves[0]
    assert (within.tensor_parallel, within.pipeline_parallel, within.replicas) == (8, 1, 2)
    spanned = place((Node("a", 1, 80.0), Node("b", 1, 80.0)), [model("m", 100.0)]).waves[0][0]
    assert spanned.hosts == (("a", "b"),)


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        (model("m", 5000.0), "5000 GiB of weights"),
        (model("m", 8.0, tensor_parallel=16), "more than the 8 GPUs of the largest node"),
        (model("m", 8.0, tensor_parallel=4, heads=14), "does not divide its 14 attention heads"),
    ],
)
def test_what_fits_nowhere_is_refused_with_the_reason(candidate, said):
    placement = place(EIGHT, [candidate])
    assert placement.waves == ()
    assert said in placement.refusals["m"]


def test_tensor_parallel_divides_the_attention_heads():
    (way,) = footprints(model("m", 61.0, heads=14), EIGHT)
    assert way.tensor_parallel == 2
    assert footprints(model("m", 131.0, heads=14), EIGHT) == ()


@pytest.mark.parametrize(
    "memories",
    [
        (81559 / 1024, 81920 / 1024),  # of H100 and A100, as their drivers tell it
        (80.0, 40.0),  # half of the larger GPU would do, and all of the smaller
    ],
)
def test_a_model_takes_the_gpus_of_nodes_that_differ(memories: tuple[float, ...]) -> None:
    nodes = tuple(Node(f"n{at}", 8, gib) for at, gib in enumerate(memories))
    candidate = model("m", 17.0, billions=8.0, studies=500, prompt_tokens=10**9)
    (deployment,) = place(nodes, [candidate]).deployments
    assert (deployment.tensor_parallel, deployment.replicas) == (1, 16)
    assert {host for (host,) in deployment.hosts} == {node.name for node in nodes}


def test_a_way_that_is_tight_on_one_node_is_not_taken_where_it_does_not_fit() -> None:
    """Two large GPUs hold it barely, two of the smaller ones not at all."""
    nodes = (Node("a", 2, 80.0), Node("b", 8, 40.0))
    by_size = {way.tensor_parallel: way.nodes for way in footprints(model("m", 120.0), nodes)}
    assert by_size == {8: ("b",), 2: ("a",)}


def test_waves_run_the_longest_work_first_and_keep_the_cluster_busy():
    works = (5, 4, 3, 2, 1)
    large = [model(f"m{work}", 131.0, prompt_tokens=work * 10**7) for work in works]
    placement = place(EIGHT, large)
    assert [set(shape) for shape in shapes(placement)] == [{"m5"}, {"m4"}, {"m3"}, {"m2"}, {"m1"}]
    seconds = placement.seconds
    assert seconds == pytest.approx(sum(group.seconds for group in placement.deployments))
    computing = sum(works) * 1e7 * 65.5 / 80_000 + 5 * 1e5 * 65.5 / 16_000
    assert computing / 8 / seconds > 0.9


def test_models_that_need_no_gpu_run_beside_the_first_wave():
    others = [Candidate("reader", "processor"), Candidate("api", "network", replicas=1)]
    with_gpus = place(EIGHT, [model("m", 440.0), model("n", 440.0), *others])
    assert [sorted(shape) for shape in shapes(with_gpus)] == [["api", "m", "reader"], ["n"]]
    needs = {group.model: group.needs for group in with_gpus.waves[0]}
    assert needs == {"m": "gpu", "api": "network", "reader": "processor"}
    without = place((), [*others, Candidate("tiny", "processor", replicas=2)])
    assert shapes(without) == [{"reader": (1, 1), "api": (1, 1)}, {"tiny": (1, 2)}]


def test_a_way_that_leaves_room_to_batch_comes_before_one_with_fewer_gpus():
    nodes = (Node("a", 1, 80.0), Node("b", 2, 80.0))
    assert [way.tensor_parallel for way in footprints(model("m", 61.0), nodes)] == [2, 1]
    assert place(nodes, [model("m", 61.0)]).waves[0][0].hosts == (("b",),)


@settings(max_examples=60, deadline=None)
@given(nodes, candidates(), st.randoms(use_true_random=False))
def test_whatever_ends_first_gpus_have_one_owner_and_none_idles_while_a_model_that_fits_waits(
    nodes, candidates, random
):
    placement = place(nodes, candidates)
    seating, waiting, running = Seating(placement.nodes), list(placement.deployments), []
    while waiting or running:
        for one in tuple(waiting):
            if seating.take(one):
                waiting.remove(one)
                running.append(one)
        held: Counter[str] = Counter()
        for one in running:
            for host in (host for hosts in one.hosts for host in hosts):
                held[host] += one.tensor_parallel
        assert all(held[node.name] <= node.gpus + 1e-6 for node in nodes)
        assert running, "a placed model has room when nobody else runs"
        assert not any(seating.take(one) for one in waiting)
        ended = running.pop(random.randrange(len(running)))
        seating.give_back(ended)


def test_what_computes_on_the_processor_takes_turns_only_where_there_is_no_gpu():
    others = [Candidate("one", "processor"), Candidate("two", "processor"), Candidate("api", "network")]
    here, placed_here = Seating(()), place((), others).deployments
    assert [here.take(one) for one in placed_here] == [True, True, False]
    here.give_back(placed_here[0])
    assert here.take(placed_here[-1])
    beside = place(EIGHT, [model("m", 440.0), *others])
    with_gpus = Seating(EIGHT)
    assert all(with_gpus.take(one) for one in beside.deployments)


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ((Span(0, 3, 10), Span(0, 5, 10)), 3.0),
        ((Span(0, 3, 10), Span(12, 14, 20)), 5.0),
        ((Span(0, 3, 10), Span(8, 14, 20)), 7.0),
    ],
)
def test_loading_counts_where_nobody_answers(spans, seconds):
    assert seconds_of_loading(spans) == seconds


REUSING = replace(
    model("m", 16.0, billions=8.0, prompt_tokens=100_000_000, output_tokens=1_000_000),
    computed_tokens=10_000_000,
    encoder_tokens=1_000_000,
    reply_tokens=100_000,
)


def test_what_caches_give_is_not_computed_again() -> None:
    encoding = 1e6 * 4 * 0.675 / 80_000
    assert work_seconds(REUSING) == pytest.approx(8 * (1e7 / 80_000 + 1e5 / 16_000) + encoding)
    assert most_seconds(REUSING) == pytest.approx(8 * (1e8 / 80_000 + 1e6 / 16_000))
    (deployment,) = place(EIGHT, [REUSING]).deployments
    assert deployment.seconds < deployment.most_seconds / 3


def test_without_a_count_the_hours_are_the_most() -> None:
    unknown = replace(REUSING, computed_tokens=None)
    assert work_seconds(unknown) == most_seconds(unknown)
