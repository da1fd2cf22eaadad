"""Models placed on real Ray clusters with logical GPUs: who stood where is read back from the replicas."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.ray.conftest import Place

pytestmark = [pytest.mark.ray, pytest.mark.full]

WORDS = ["name=placed", "selector=[clinical]", "budget=[8]", "tracker=none", "cluster.gpu_memory_gib=80"]
OBJECT_STORE = 128 * 2**20


@contextmanager
def ray_of(*gpus: int, **environment: str) -> Iterator[str]:
    """The address of a cluster with a node for each number of GPUs, whose workers have this environment."""
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 2, "object_store_memory": OBJECT_STORE, "include_dashboard": False}
    environment = {"RAY_AUTH_MODE": "disabled", **environment}  # whatever token is in the tester's home
    environment = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", **environment}
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    cluster = Cluster(initialize_head=True, head_node_args={**options, "num_gpus": gpus[0]})
    try:
        for number in gpus[1:]:
            cluster.add_node(num_cpus=1, num_gpus=number, object_store_memory=OBJECT_STORE)
        yield cluster.address
    finally:
        cluster.shutdown()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def rehearse(place: Place, **weights: str) -> str:
    """Write simulated readers that are placed like models; the word that chooses them."""
    folder = place.root / "conf" / "model"
    folder.mkdir(parents=True, exist_ok=True)
    for name, options in weights.items():
        text = f"{name}:\n  engine: uniform\n  options: {{seed: {len(name)}}}\n  {options}\n"
        (folder / f"{name}.yaml").write_text(text)
    return f"model=[{','.join(weights)}]"


def seats(place: Place) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """By model: the node and the GPUs of every replica, as it found them in its own environment."""
    found: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for wave in place.manifest()["placement"]["waves"]:
        for group in wave:
            for seat in group["seats"]:
                node, _, gpus = seat.partition(":")
                numbers = tuple(sorted(int(gpu) for gpu in gpus.split(",") if gpu))
                found.setdefault(group["model"], []).append((node, numbers))
    return found


def waves(place: Place) -> list[set[str]]:
    return [{group["model"] for group in wave} for wave in place.manifest()["placement"]["waves"]]


def taken(place: Place, wave: int) -> Counter[tuple[str, int]]:
    """How many replicas of a wave saw each GPU."""
    named = waves(place)[wave]
    by_model = seats(place)
    return Counter((node, gpu) for model in named for node, numbers in by_model[model] for gpu in numbers)


def runs_at(group: dict[str, Any], second: float) -> bool:
    return bool(group["span"]["began"] <= second < group["span"]["ended"])


def shares(group: dict[str, Any], stood: dict[str, Any]) -> "Counter[tuple[str, int]]":
    """What a model holds of every GPU that its replicas saw."""
    if group["pipeline_parallel"] > 1:
        return Counter()
    share = group["gpus_per_replica"] / group["tensor_parallel"]
    held: Counter[tuple[str, int]] = Counter()
    for node, numbers in stood[group["model"]]:
        held.update({(node, gpu): share for gpu in numbers})
    return held


def test_models_stand_side_by_side_where_they_were_placed(place: Place) -> None:
    chosen = rehearse(place, wide="weight_gib: 131", pair="weight_gib: 61", lone="weight_gib: 30")
    with ray_of(4, 3) as address:
        place.sweep(*WORDS, chosen, f"cluster.address={address}")
    assert waves(place) == [{"wide", "pair", "lone"}]
    stood = seats(place)
    assert {model: {len(gpus) for _, gpus in found} for model, found in stood.items()} == {
        "wide": {4},
        "pair": {2},
        "lone": {1},
    }
    assert set(taken(place, 0).values()) == {1}, "no GPU has two owners"
    ((four, _),) = stood["wide"]
    assert all(node != four for model in ("pair", "lone") for node, _ in stood[model])
    requests = place.manifest()["requests"]
    assert requests["executed"] == requests["unique"] == requests["ok"]


@pytest.mark.parametrize(
    "gpus",
    [
        pytest.param((8,), marks=pytest.mark.long, id="1x8"),
        pytest.param((4, 4), marks=pytest.mark.long, id="2x4"),
        pytest.param((1,) * 8, marks=pytest.mark.long, id="8x1"),
        pytest.param((4, 2, 1), id="mixed"),
    ],
)
def test_every_replica_stands_where_it_was_placed(place: Place, gpus: tuple[int, ...]) -> None:
    large = {name: f"weight_gib: {weight}" for name, weight in (("wide", 131), ("pair", 61), ("lone", 30))}
    small = {name: "weight_gib: 8\n  fraction: 0.5\n  replicas: 1" for name in ("small", "mini")}
    with ray_of(*gpus) as address:
        place.sweep(*WORDS, rehearse(place, **large, **small), f"cluster.address={address}")
    placement = place.manifest()["placement"]
    assert sorted(node["gpus"] for node in placement["nodes"]) == sorted(gpus)
    stood = seats(place)
    groups = [group for wave in placement["waves"] for group in wave]
    for group in groups:
        found = stood[group["model"]]
        assert len(found) <= group["replicas"], "a replica that had no study says nothing"
        assert not Counter(node for node, _ in found) - Counter(hosts[0] for hosts in group["hosts"])
        if group["pipeline_parallel"] == 1:  # else its GPUs are in bundles that vLLM's own workers fill
            assert {len(numbers) for _, numbers in found} == {group["tensor_parallel"]}
        beside = [other for other in groups if runs_at(other, group["span"]["began"])]
        owned = sum((shares(other, stood) for other in beside), Counter())
        assert max(owned.values(), default=0) <= 1
    assert set(stood["small"]) == set(stood["mini"]), "two halves of one GPU"
    assert any(group["pipeline_parallel"] > 1 for wave in placement["waves"] for group in wave) == (
        gpus == (1,) * 8
    )


def test_what_fits_nowhere_is_an_error_before_any_load_or_left_out(place: Place) -> None:
    chosen = rehearse(place, vast="weight_gib: 1400", one="weight_gib: 131", other="weight_gib: 130")
    with ray_of(4) as address:
        words = [*WORDS, chosen, f"cluster.address={address}"]
        printed = place.sweep(*words, expect=2)
        assert "1400 GiB of weights" in printed
        assert "keep_going=true" in printed
        assert not (place.root / "store" / "completions").exists()
        printed = place.sweep(*words, "keep_going=true", expect=1)
    assert waves(place) == [{"one"}, {"other"}]
    assert "not run: vast: vast has 1400 GiB of weights" in printed
    assert list(place.manifest()["failed"]) == ["vast"]
    requests = place.manifest()["requests"]
    assert requests["executed"] == requests["ok"] == requests["unique"] * 2 // 3


@pytest.mark.long
def test_a_model_of_tensor_parallel_two_owns_two_gpus_and_answers(place: Place) -> None:
    words = ["model=[tiny]", "+model.tiny.tensor_parallel=2", "+model.tiny.weight_gib=1", "subtask=[C10,L01]"]
    with ray_of(2, VLLM_CPU_OMP_THREADS_BIND="nobind") as address:  # its default wants a NUMA node each
        place.sweep(*WORDS, *words, f"cluster.address={address}", "cluster.gpus=2")
    ((_, numbers),) = seats(place)["tiny"]
    assert numbers == (0, 1)
    requests = place.manifest()["requests"]
    assert requests["executed"] == requests["ok"] == requests["unique"] > 0


@pytest.mark.long
def test_an_engine_that_cannot_start_is_named_and_the_other_models_run(place: Place) -> None:
    words = [*WORDS, "model=[tiny,oracle]", "model.tiny.kv_cache_gib=0.0001", "keep_going=true"]
    printed = place.sweep(*words, expect=1)
    assert "not run: tiny: the stream ended early: the engine could not be started: " in printed
    assert "Traceback" not in printed
    manifest = place.manifest()
    assert list(manifest["failed"]) == ["tiny"]
    assert manifest["requests"]["ok"] == manifest["requests"]["executed"] > 0
