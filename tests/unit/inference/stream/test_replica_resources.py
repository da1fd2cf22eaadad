"""Placement groups of replicas that span nodes, with stand-ins for Ray's."""

import pytest
import ray

from cardiolens.inference.placement.placement import Deployment
from cardiolens.inference.stream.replica_resources import reserved


def test_a_group_that_cannot_be_made_frees_those_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    removed: list[object] = []

    def group(*_: object, **__: object) -> object:
        if len(made) == 2:
            raise RuntimeError("no such node")
        made.append(object())
        return made[-1]

    monkeypatch.setattr(ray.util, "placement_group", group)
    monkeypatch.setattr(ray.util, "remove_placement_group", removed.append)
    hosts = (("a", "b"), ("c", "d"), ("e", "f"))
    deployment = Deployment("m", 2, 2, hosts, utilization=0.9, reason="", seconds=1.0)
    with pytest.raises(RuntimeError, match="no such node"), reserved(deployment, 1, 1):
        pass
    assert len(made) == 2
    assert removed == made
