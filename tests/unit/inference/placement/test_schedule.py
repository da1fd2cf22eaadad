"""When models run: laws for any placement and any order of ends, and schedules worked out by hand."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.inference.placement.footprint import Candidate, most_seconds, work_seconds
from cardiolens.inference.placement.placement import Deployment, Placement, Seating, place, schedule
from cardiolens.inference.stream.execution import Span, seconds_of_loading
from tests.unit.clusters import EIGHT, candidates, model, nodes


def deployment(name: str, replicas: int, seconds: float, size: int = 1) -> Deployment:
    return Deployment(name, size, 1, (("a",),) * replicas, 0.9, "", seconds)


def placed(*waves: tuple[Deployment, ...]) -> Placement:
    return Placement(EIGHT, waves, ())


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
        seating.give_back(ended.model)


@settings(max_examples=60, deadline=None)
@given(nodes, candidates())
def test_every_model_begins_once_and_the_cluster_is_never_busier_than_it_is_large(nodes, candidates):
    placement = place(nodes, candidates)
    planned = schedule(placement)
    assert sorted(planned.begins) == sorted(deployment.model for deployment in placement.deployments)
    ends = [planned.begins[deployment.model] + deployment.seconds for deployment in placement.deployments]
    assert planned.seconds == max(ends, default=0.0)
    work = sum(deployment.gpu_hours for deployment in placement.deployments) * 3600
    assert work <= planned.seconds * sum(node.gpus for node in nodes) * (1 + 1e-9)


def test_a_model_begins_when_its_own_gpus_are_free_not_when_the_wave_has_ended():
    long, short = deployment("long", 1, 100.0, size=4), deployment("short", 4, 10.0)
    after, last = deployment("after", 2, 30.0, size=2), deployment("last", 8, 5.0)
    planned = schedule(placed((long, short), (after,), (last,)))
    assert planned.begins == {"long": 0.0, "short": 0.0, "after": 10.0, "last": 100.0}
    assert planned.seconds == 105.0
    assert planned.at_once == 2


def test_a_model_that_fits_overtakes_one_that_must_wait():
    planned = schedule(
        placed((deployment("half", 4, 100.0),), (deployment("all", 8, 10.0),), (deployment("few", 2, 7.0),))
    )
    assert planned.begins == {"half": 0.0, "few": 0.0, "all": 100.0}


def test_what_computes_on_the_processor_takes_turns_only_where_there_is_no_gpu():
    others = [Candidate("one", "processor"), Candidate("two", "processor"), Candidate("api", "network")]
    here = Seating(())
    assert [here.take(one) for one in place((), others).deployments] == [True, True, False]
    here.give_back("one")
    assert here.take(place((), others).deployments[-1])
    beside = place(EIGHT, [model("m", 440.0), *others])
    with_gpus = Seating(EIGHT)
    assert all(with_gpus.take(one) for one in beside.deployments)
    assert schedule(beside).at_once == 4


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
