"""Models placed on real Ray clusters with logical GPUs: who stood where is read back from the replicas."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.ray.conftest import Place

pytestmark = pytest.mark.ray

WORDS = ["name=placed", "selector=[clinical]", "budget=[8]", "tracker=none", "cluster.gpu_memory_gib=80"]
OBJECT_STORE = 128 * 2**20


@contextmanager
def ray_of(*gpus: int) -> Iterator[str]:
    """The address of a cluster with a node for each number of GPUs."""
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 2, "object_store_memory": OBJECT_STORE, "include_dashboard": False}
    before = {name: os.environ.get(name) for name in ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO",)}
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
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
                numbers = tuple(sorted(int(gpu) for gpu in gpus.split(",")))
                found.setdefault(group["model"], []).append((node, numbers))
    return found


def waves(place: Place) -> list[set[str]]:
    return [{group["model"] for group in wave} for wave in place.manifest()["placement"]["waves"]]


def taken(place: Place, wave: int) -> Counter[tuple[str, int]]:
    """How many replicas of a wave saw each GPU."""
    named = waves(place)[wave]
    by_model = seats(place)
    return Counter((node, gpu) for model in named for node, numbers in by_model[model] for gpu in numbers)


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
