"""Partition limits: parsing of sinfo, and errors that name the option which exceeds them."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.inference.placement.footprint import Node
from cardiolens.inference.placement.placement import place
from cardiolens.workflow.slurm import limits
from cardiolens.workflow.slurm.jobs import Job, Resources, short_of_cpus
from cardiolens.workflow.slurm.limits import check_limits, read_nodes, seconds_of
from tests.unit.clusters import model

CLUSTER = """\
cpu*|infinite|4|64|257000+|(null)
gpu|1-00:00:00|2|32|515000|gpu:a100:4(S:0-1)
gpu|1-00:00:00|1|48|1031000|gpu:a100:2,gpu:h100:8
short|30:00|8|16|64000|gpu:2
mixed|infinite|8|32|257000|gpu:h100:8
mixed|infinite|4|192|1031000|(null)
mixed|infinite|1|48|1031000|gpu:h100:4
"""
MODEL = Job("model", "large", ("large",), Resources(1, 4))
CPU = Job("score", "score")


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "run", lambda *_: CLUSTER)


@given(st.integers(0, 40), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_times_are_read_in_every_form_in_which_slurm_writes_them(
    days: int, hours: int, minutes: int, seconds: int
) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert seconds_of(f"{days}-{hours:02}:{minutes:02}:{seconds:02}") == total
    assert seconds_of(f"{days * 24 + hours}:{minutes:02}:{seconds:02}") == total
    assert seconds_of(f"{days}-{hours}") == (days * 24 + hours) * 3600
    assert seconds_of(f"{minutes}:{seconds:02}") == minutes * 60 + seconds
    assert seconds_of(f"{minutes}") == minutes * 60


@pytest.mark.parametrize("endless", ["infinite", "UNLIMITED", "n/a"])
def test_no_limit_is_endless(endless: str) -> None:
    assert seconds_of(endless) == math.inf


def test_nodes_are_read_with_their_gpus() -> None:
    first, second, third, fourth, *_ = read_nodes(CLUSTER)
    assert (first.partition, first.is_default, first.gpus_of(None)) == ("cpu", True, 0)
    assert (second.gpus_of("a100"), second.gpus_of("h100"), second.gpus_of(None)) == (4, 0, 4)
    assert (third.gpus_of("h100"), third.gpus_of(None)) == (8, 10)
    assert (fourth.seconds, fourth.gpus) == (1800, (("", 2),))


@pytest.mark.parametrize(
    ("options", "job", "said"),
    [
        (
            {"partition": "gpu", "time": "30:00:00"},
            MODEL,
            r"cluster\.time=30:00:00: partition gpu .* 1-00:00:00",
        ),
        ({"partition": "short", "cpu_time": "01:00:00"}, CPU, r"cluster\.cpu_time=01:00:00: .* 00:30:00"),
        ({"partition": "short", "time": "00:30:00"}, MODEL, "large: 4 GPUs .* short has more than 2; lower"),
        ({"partition": "gpu", "gpu_type": "v100"}, MODEL, r"than 0 of gpu_type=v100; .*\(a100, h100\)"),
        (
            {"partition": "gpu"},
            Job("model", "m", ("m",), Resources(4, 1)),
            "4 nodes with 1 GPUs, but partition gpu has 3",
        ),
        (
            {"partition": "gpu", "cpus": 49},
            replace(MODEL, resources=Resources(1, 4, 49)),
            r"cluster\.cpus=49: no node of partition gpu .* 48 CPUs",
        ),
        (
            {"partition": "gpu"},
            replace(MODEL, resources=Resources(1, 4, 50)),
            r"large: 50 CPUs a node .* more than 48; lower cluster\.gpus, or set cluster\.cpus=48",
        ),
        ({"cpu_cpus": 65}, CPU, r"cluster\.cpu_cpus=65: no node of partition cpu"),
        ({"partition": "gpu", "memory_gib": 1007}, MODEL, r"cluster\.memory_gib=1007: .* 1006\.8 GiB"),
        ({}, MODEL, "no node of partition cpu has more than 0"),
        (
            {"partition": "mixed"},
            replace(MODEL, resources=Resources(1, 8, 34)),
            "34 CPUs a node .* no node of partition mixed with 8 GPUs has more than 32; ",
        ),
        (
            {"partition": "mixed", "memory_gib": 300},
            Job("model", "m", ("m",), Resources(1, 8, 32)),
            "251.0 GiB",
        ),
        ({"partition": "mixed"}, Job("model", "m", ("m",), Resources(2, 4, 40)), "2 nodes .* mixed has 1; "),
    ],
)
def test_the_option_that_asks_for_more_is_named(options: dict[str, Any], job: Job, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_limits([job], SlurmSpec(**options))


@pytest.mark.parametrize(
    ("options", "job"),
    [
        ({"partition": "gpu", "time": "24:00:00", "cpus": 48, "memory_gib": 1006}, MODEL),
        ({"partition": "short,gpu", "time": "02:00:00"}, MODEL),
        ({"partition": "gpu", "gpu_type": "h100"}, Job("model", "m", ("m",), Resources(1, 8))),
        ({"partition": "short", "cpu_partition": "cpu"}, CPU),
        ({"partition": "mixed", "memory_gib": 600}, Job("model", "m", ("m",), Resources(1, 4, 40))),
        ({"partition": "mixed", "memory_gib": 600}, Job("model", "m", ("m",), Resources(1, 0, 192))),
        ({"partition": "hidden"}, MODEL),  # sinfo does not list it: SLURM decides
    ],
)
def test_what_some_node_has_is_taken(options: dict[str, Any], job: Job) -> None:
    check_limits([job], SlurmSpec(**options))


def test_sinfo_is_asked_for_every_kind_of_node_and_plain_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it tells the least of nodes that differ, with a plus, and of 1024 nodes that they are 1K."""
    asked = []
    monkeypatch.setattr(limits, "run", lambda *words: asked.extend(words) or CLUSTER)
    check_limits([CPU], SlurmSpec())
    assert {"--exact", "--noconvert"} <= set(asked)


def test_a_plan_says_that_engines_will_wait_for_processors() -> None:
    nodes = (Node("a", 8, 80.0),)
    (deployment,) = place(nodes, [model("m", 16.0)]).deployments
    assert deployment.replicas == 8
    (told,) = short_of_cpus([deployment], 8)
    assert "cluster.cpus=8: the engines of m on a node want 26" in told
    assert not list(short_of_cpus([deployment], 26))
    assert not list(short_of_cpus([deployment], None))
