"""Models placed on real Ray clusters with logical GPUs: who stood where is read back from the replicas."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cardiolens.inference.placement.placement import Deployment
from cardiolens.inference.stream.replica_resources import reserved
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
    for name, options in weights.items():
        place.write_model(
            name, f"{name}:\n  engine: uniform\n  options: {{seed: {len(name)}}}\n  {options}\n"
        )
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


def runs_at(group: dict[str, Any], second: float) -> bool:
    return bool(group["span"]["began"] <= second < group["span"]["ended"])


def held_gpus(group: dict[str, Any], stood: dict[str, Any]) -> "Counter[tuple[str, int]]":
    """The GPUs that the replicas of a model saw."""
    if group["pipeline_parallel"] > 1:
        return Counter()
    return Counter((node, gpu) for node, numbers in stood[group["model"]] for gpu in numbers)


@pytest.mark.parametrize(
    "gpus", [pytest.param((1,) * 8, marks=pytest.mark.long, id="8x1"), pytest.param((4, 2, 1), id="mixed")]
)
def test_every_replica_stands_where_it_was_placed(place: Place, gpus: tuple[int, ...]) -> None:
    large = {name: f"weight_gib: {weight}" for name, weight in (("wide", 131), ("pair", 61), ("lone", 30))}
    with ray_of(*gpus) as address:
        place.sweep(*WORDS, rehearse(place, **large), f"cluster.address={address}")
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
        owned = sum((held_gpus(other, stood) for other in beside), Counter())
        assert max(owned.values(), default=0) <= 1
    requests = place.manifest()["requests"]
    assert requests["executed"] == requests["unique"] == requests["ok"]
    assert any(group["pipeline_parallel"] > 1 for wave in placement["waves"] for group in wave) == (
        gpus == (1,) * 8
    )


class Stub:
    """In the place of a replica: says which node and GPUs it has."""

    def seat(self) -> tuple[str, int]:
        context = ray.get_runtime_context()
        return context.get_node_id(), len(context.get_accelerator_ids()["GPU"])


def free_gpus(wanted: float) -> float:
    """The free GPUs of the cluster, once they are as many as wanted, or after five minutes."""
    deadline = time.monotonic() + 300
    while (free := ray.available_resources().get("GPU", 0.0)) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return float(free)


def seated(places: Any, replicas: int) -> list[tuple[str, int]]:
    """The seats of stubs that start where the replicas of a model would."""
    kind = ray.remote(num_cpus=0, num_gpus=places["num_gpus"])(Stub)
    stubs = [kind.options(**places["ray_remote_args_fn"]()).remote() for _ in range(replicas)]
    found: list[tuple[str, int]] = ray.get([stub.seat.remote() for stub in stubs], timeout=600)
    for stub in stubs:
        ray.kill(stub)
    return found


def test_groups_stand_on_their_nodes_beside_others_and_a_failure_frees_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two nodes of four GPUs, two of each busy: tensor parallel on one node, pipeline over both."""
    made = []
    with ray_of(4, 4) as address:
        ray.init(address=address, log_to_driver=False)
        try:
            first, second = (node["NodeID"] for node in ray.nodes())
            on = [NodeAffinitySchedulingStrategy(node, soft=False) for node in (first, second)]
            busy = [
                ray.remote(num_cpus=0, num_gpus=2)(Stub).options(scheduling_strategy=node).remote()
                for node in on
            ]
            ray.get([stub.seat.remote() for stub in busy])
            within = Deployment("m", 2, 1, ((first,), (second,)), 0.9, "", 1.0)
            with reserved(within, 1, 1) as places:
                assert sorted(seated(places, 2)) == sorted([(first, 2), (second, 2)])
            assert free_gpus(4) == 4

            original = ray.util.placement_group

            def group(*words: Any, **options: Any) -> Any:
                if len(made) == 2:
                    made[1].wait(60)  # Ray may lose the GPUs of a group that is removed while it is made
                    raise RuntimeError("no room for the second group")
                made.append(original(*words, **options))
                return made[-1]

            monkeypatch.setattr(ray.util, "placement_group", group)
            over = Deployment("m", 2, 2, ((first, second),), 0.9, "", 1.0)
            with reserved(over, 1, 1) as places:
                assert seated(places, 1) == [(first, 0)], "the GPUs are of vLLM's own workers"
                bundles = ray.util.placement_group_table(made[0])["bundles_to_node_id"]
                assert [bundles[n] for n in range(4)] == [first, first, second, second]
                assert free_gpus(0) == 0
            assert free_gpus(4) == 4
            twice = Deployment("m", 1, 2, ((first, second), (first, second)), 0.9, "", 1.0)
            with pytest.raises(RuntimeError, match="no room for the second group"), reserved(twice, 1, 1):
                pass
            assert free_gpus(4) == 4
            assert ray.util.placement_group_table(made[1])["state"] == "REMOVED"
        finally:
            ray.shutdown()


def test_what_fits_nowhere_is_an_error_before_any_load_or_left_out(place: Place) -> None:
    chosen = rehearse(place, vast="weight_gib: 1400", one="weight_gib: 131", other="weight_gib: 130")
    with ray_of(4) as address:
        relative = ["store=store", "outputs=outputs"]  # to the folder of the sweep, not of the cluster
        words = [*WORDS, chosen, f"cluster.address={address}", *relative]
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
    """Its cache has no room for one request; the remedy is named, too."""
    words = ["model=[tiny,oracle]", "model.tiny.engine_options.kv_cache_memory_bytes=1048576"]
    printed = place.sweep(*WORDS, *words, "keep_going=true", expect=1)
    assert "not run: tiny: the stream ended early: the engine could not be started: " in printed
    assert "KV cache" in printed
    assert "lower max_model_len, raise gpu_memory_utilization" in printed
    assert "Traceback" not in printed
    manifest = place.manifest()
    assert list(manifest["failed"]) == ["tiny"]
    assert manifest["requests"]["ok"] == manifest["requests"]["executed"] > 0
