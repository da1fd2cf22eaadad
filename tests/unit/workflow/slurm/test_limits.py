"""Partition limits: parsing of sinfo, and errors that name the option which exceeds them."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.workflow.slurm import limits
from cardiolens.workflow.slurm.jobs import Job, Resources
from cardiolens.workflow.slurm.limits import check_limits, read_nodes, seconds_of

CLUSTER = """\
cpu*|infinite|4|64|257000+|(null)
gpu|1-00:00:00|2|32|515000|gpu:a100:4(S:0-1)
gpu|1-00:00:00|1|48|1031000|gpu:a100:2,gpu:h100:8
short|30:00|8|16|64000|gpu:2
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
    first, second, third, fourth = read_nodes(CLUSTER)
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
            "4 nodes, but partition gpu has 3",
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
        ({"partition": "hidden"}, MODEL),  # sinfo does not list it: SLURM decides
    ],
)
def test_what_some_node_has_is_taken(options: dict[str, Any], job: Job) -> None:
    check_limits([job], SlurmSpec(**options))
