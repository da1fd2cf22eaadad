"""A start of vLLM that a neighbour disturbed, and the threads that it may use."""

import pytest

from cardiolens.inference.engine import startup as starting
from cardiolens.inference.engine.memory_remedies import with_remedy
from cardiolens.inference.engine.startup import set_by_ray, started

DISTURBED = "AssertionError: Error in memory profiling. Initial free memory 20.1 GiB, current 60 GiB."


class Vllm:
    """Fails to start with each of these messages in turn, then starts."""

    def __init__(self, *messages: str) -> None:
        self.messages = list(messages)
        self.tries = 0

    def __call__(self) -> str:
        self.tries += 1
        if self.messages:
            raise RuntimeError(self.messages.pop(0))
        return "engine"


def test_a_start_that_a_neighbour_disturbed_is_tried_once_more():
    vllm = Vllm(DISTURBED)
    assert started(vllm) == "engine"
    assert vllm.tries == 2
    vllm = Vllm(DISTURBED, DISTURBED)
    with pytest.raises(RuntimeError, match="memory profiling"):
        started(vllm)
    assert vllm.tries == 2


def test_any_other_failure_is_final_and_named_by_its_root_cause(monkeypatch: pytest.MonkeyPatch):
    vllm = Vllm("Engine core initialization failed. See root cause above.")
    monkeypatch.setattr(starting, "root_cause", lambda since: "ValueError: no room for the KV cache")
    with pytest.raises(RuntimeError, match="no room for the KV cache"):
        started(vllm)
    assert vllm.tries == 1


def test_the_disturbance_is_read_from_the_logs_of_vllms_processes(monkeypatch: pytest.MonkeyPatch):
    vllm = Vllm("Engine core initialization failed. See root cause above.")
    monkeypatch.setattr(starting, "root_cause", lambda since: DISTURBED)
    assert started(vllm) == "engine"


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "tensor_parallel"),
        ("ValueError: No available memory for the cache blocks. Try increasing", "gpu_memory_utilization"),
        (
            "ValueError: 8 GiB KV cache is needed, which is larger than the available KV cache",
            "max_model_len",
        ),
        ("ValueError: Free memory is less than desired GPU memory utilization (0.9", "nvidia-smi"),
    ],
)
def test_a_lack_of_memory_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, reason: str, setting: str
):
    monkeypatch.setattr(starting, "root_cause", lambda since: reason)
    with pytest.raises(RuntimeError) as failed:
        started(Vllm("Engine core initialization failed."))
    assert str(failed.value).startswith(reason)
    assert setting in str(failed.value).removeprefix(reason)


def test_no_remedy_is_guessed_for_other_reasons():
    assert with_remedy("ValueError: no such head size") == "ValueError: no such head size"


@pytest.mark.parametrize(
    ("environment", "told", "undone"),
    [
        ({"OMP_NUM_THREADS": "1"}, {}, True),
        ({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "1"}, False),
        ({"OMP_NUM_THREADS": "8"}, {}, False),
        ({}, {}, False),
    ],
)
def test_the_one_thread_of_ray_is_told_from_the_users(environment, told, undone):
    assert set_by_ray(environment, told) == undone
