"""What vLLM is given, memory of GPUs, and the cause and remedy of a start that failed."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.model import SAME_ANSWERS, SET_HERE, ModelSpec
from cardiolens.inference.engine import engine_memory, startup, vllm_engine
from cardiolens.inference.engine.engine_memory import encoder_room, gpu_gib, tune, wait_for_memory
from cardiolens.inference.engine.startup import cause_in, check_engine_options, known_options, with_remedy
from cardiolens.inference.engine.vllm_engine import VllmEngine
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.placement.placement import Deployment
from cardiolens.runtime import nvidia_smi as module
from cardiolens.runtime.nvidia_smi import Gpu, gpus

TINY = ["model=[tiny]"]


def option(text: str) -> list[str]:
    return [*TINY, f"+model.tiny.engine_options.{text}"]


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when vLLM imports it
def test_the_legal_names_are_the_fields_of_the_installed_vllm():
    of_vllm = {field.name for field in fields(import_module("vllm.engine.arg_utils").AsyncEngineArgs)}
    assert known_options() == {name for name in of_vllm if not name.startswith("_")}
    assert known_options() >= SAME_ANSWERS | SET_HERE.keys()
    assert not SAME_ANSWERS & SET_HERE.keys()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kv_cache_dtyp=fp8", r"model tiny: engine_options\.kv_cache_dtyp: .*nearest are kv_cache_dtype"),
        ("tensor_parallel_size=2", "tensor_parallel_size is set by CardioLens; use tensor_parallel"),
        ("gpu_memory_utilization=2", "expected a share above 0, at most 1"),
    ],
)
def test_an_option_that_vllm_does_not_have_or_that_has_a_setting_is_refused(text: str, said: str):
    with pytest.raises(InputError, match=said):
        check_engine_options(read_spec(option(text)))


def test_only_an_engine_of_vllm_has_them():
    with pytest.raises(InputError, match="engine: oracle"):
        read_spec(["model=[oracle]", "+model.oracle.engine_options.kv_cache_dtype=fp8"])


def test_without_vllm_nothing_is_known_and_nothing_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(startup, "known_options", frozenset)
    check_engine_options(read_spec(option("zzz=1")))


def handed(monkeypatch: pytest.MonkeyPatch, device: str = "cuda", **options: object) -> dict[str, object]:
    """What vLLM is given for a model."""
    monkeypatch.setattr(vllm_engine, "installed_engine", lambda: (device, "0.32.0"))
    videos = bool(options.pop("shows_videos", False))
    model = ModelSpec.model_validate({"name": "m", "source": "hub/m", **options})
    deployment = Deployment("m", 2, 1, (("a",),), 0.9, "", 0.0)
    engine = VllmEngine(model, Identity("m-0", Path("/m"), {}), 8, deployment, shows_videos=videos)
    return engine._engine_options()


def test_they_arrive_at_vllm_above_defaults_and_below_settings(monkeypatch: pytest.MonkeyPatch):
    nested = {"mm_processor_kwargs": {"max_pixels": 100_000}, "enable_prefix_caching": False}
    found = handed(monkeypatch, engine_options={**nested, "load_format": "hf"})
    assert found["mm_processor_kwargs"] == {"max_pixels": 100_000}
    assert found["enable_prefix_caching"] is False
    assert found["load_format"] == "hf"
    assert found["tensor_parallel_size"] == 2
    assert "load_format" not in handed(monkeypatch)


def test_memory_is_the_placement_s_on_gpus_and_the_file_s_without(monkeypatch: pytest.MonkeyPatch):
    options = {"gpu_memory_utilization": 0.5, "kv_cache_memory_bytes": 7}
    found = handed(monkeypatch, engine_options=options)
    assert (found["gpu_memory_utilization"], found["kv_cache_memory_bytes"]) == (0.9, 7)
    assert handed(monkeypatch, device="cpu", engine_options=options)["kv_cache_memory_bytes"] == 7


def test_room_is_kept_for_videos_only_where_they_are_shown(monkeypatch: pytest.MonkeyPatch):
    assert handed(monkeypatch)["limit_mm_per_prompt"] == {"image": 8, "video": 0}
    filmed = handed(monkeypatch, shows_videos=True)["limit_mm_per_prompt"]
    assert filmed == {"image": 8, "video": {"count": 4, "num_frames": 8, "width": 448, "height": 448}}


@pytest.mark.parametrize(("mib", "tokens"), [(81_559, 16_384), (46_068, 8_192)])
def test_steps_are_as_large_as_the_memory_bears(mib: int, tokens: int, monkeypatch: pytest.MonkeyPatch):
    found = [Gpu("A100", mib / 1024, mib / 1024), Gpu("H200", mib / 512, mib / 512)]
    monkeypatch.setattr(engine_memory, "gpus", lambda: found)
    assert handed(monkeypatch)["max_num_batched_tokens"] == tokens
    own = handed(monkeypatch, engine_options={"max_num_batched_tokens": 4096})
    assert own["max_num_batched_tokens"] == 4096
    assert "max_num_batched_tokens" not in handed(monkeypatch, device="cpu")


def config(
    hidden: int, dtype: str = "torch.bfloat16", deepstack: object = None, *, hybrid: bool = False
) -> Any:
    vision = SimpleNamespace(deepstack_visual_indexes=deepstack)
    model = SimpleNamespace(
        hf_config=SimpleNamespace(vision_config=vision),
        dtype=dtype,
        get_inputs_embeds_size=lambda: hidden,
        is_hybrid=hybrid,
    )
    cache = SimpleNamespace(enable_prefix_caching=True, prefix_match_unit=None)
    scheduler = SimpleNamespace(encoder_cache_size=2048)
    return SimpleNamespace(model_config=model, scheduler_config=scheduler, cache_config=cache)


@pytest.mark.parametrize(
    ("made", "room", "tokens"),
    [
        (config(8192), encoder_room(80.0, 0.9), 157_286),  # the frames of a study, for the widest model
        (config(3584), None, 2**30 // 7168),
        (config(3584, "torch.float32"), None, 2**30 // 14_336),
        (config(4096, deepstack=[8, 16, 24]), None, 2**30 // (4 * 8192)),
        (config(4096), 0.0, 2048),
    ],
)
def test_the_cache_fills_its_room_and_is_never_smaller_than_vllms(
    made: Any, room: float | None, tokens: int
) -> None:
    tune(made, room)
    assert made.scheduler_config.encoder_cache_size == tokens


@pytest.mark.parametrize(("gib", "utilization", "room"), [(80, 0.9, 2.4), (80, 0.97, 1.0), (0, 0.9, 0)])
def test_the_room_fits_beside_the_engine_and_its_context(gib: float, utilization: float, room: float) -> None:
    assert encoder_room(gib, utilization) == pytest.approx(room, abs=0.01)
    assert 1.4 * room + 1.0 <= (1 - utilization) * gib + 1e-9 or not room


def test_prefixes_of_a_hybrid_model_end_between_blocks() -> None:
    for hybrid in (True, False):
        made = config(4096, hybrid=hybrid)
        tune(made, 0.0)
        assert made.cache_config.prefix_match_unit == (16 if hybrid else None)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of each wait for memory, on a clock that they alone move."""
    seconds: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(seconds), sleep=seconds.append)
    monkeypatch.setattr(engine_memory, "time", clock)
    return seconds


@pytest.mark.parametrize(("free", "waits"), [(20_000, 3), (72_000, 0)])
def test_memory_is_waited_for_as_long_as_patience_lasts(
    nvidia_smi: Callable[[str], None], slept: list[float], free: int, waits: int
):
    nvidia_smi(f"echo 'A100, 80000, 80000'\necho 'A100, {free}, 80000'")
    wait_for_memory(0.9, patience=2.5)
    assert len(slept) == waits


def test_only_the_gpus_of_this_process_are_asked_for(
    nvidia_smi: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi('echo "${3:-of all}, 1024, 2048"')
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert gpus() == [Gpu("--id=5", 1.0, 2.0)]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert gpus() == [Gpu("of all", 1.0, 2.0)]


@pytest.mark.parametrize("script", ["exit 9", "echo No devices were found", "exec sleep 60", ""])
def test_a_driver_in_trouble_has_no_gpus(
    nvidia_smi: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.3)
    nvidia_smi(script)
    assert gpus() == []


def test_a_gpu_without_a_memory_of_its_own_is_not_waited_for(
    nvidia_smi: Callable[[str], None], slept: list[float]
) -> None:
    """As drivers say of GPUs that share the machine's memory."""
    nvidia_smi("echo 'GB10, [N/A], [N/A]'")
    assert gpus() == [Gpu("GB10", None, None)]
    assert gpu_gib() == 0.0
    wait_for_memory(0.9, patience=30)
    assert not slept


LOG = """\
(EngineCore pid=7) WARNING 11-22 10:32:57 [cpu.py:224] Triton is not installed.
(Worker pid=9) ERROR 11-22 10:32:58 [multiproc_executor.py:772] WorkerProc failed to start.
(Worker pid=9) ERROR 11-22 10:32:58 [multiproc_executor.py:772] Traceback (most recent call last):
(Worker pid=9) ERROR 11-22 10:32:58 [multiproc_executor.py:772]     raise torch.OutOfMemoryError("none left")
(Worker pid=9) ERROR 11-22 10:32:58 [multiproc_executor.py:772] torch.OutOfMemoryError: CUDA out of memory.
(EngineCore pid=7) ERROR 11-22 10:32:59 [core.py:866] Exception: WorkerProc initialization failed due to an
(EngineCore pid=7) ERROR 11-22 10:32:59 [core.py:866] Exception: WorkerProc initialization failed. See above.
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""

SCRIPT = """\
import subprocess, sys
from cardiolens.inference.engine.startup import root_cause, written_so_far
print("ValueError: of before", file=sys.stderr, flush=True)
since = written_so_far()
subprocess.run([sys.executable, "-c", "raise MemoryError('of the child')"])
print(root_cause(since), flush=True)
print(root_cause(written_so_far()))
"""


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "tensor_parallel"),
        ("ValueError: 8 GiB KV cache is needed, larger than the available KV cache", "max_model_len"),
        ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp", "NCCL_DEBUG"),
        ("ValueError: Free memory is less than desired GPU memory utilization (0.9", "nvidia-smi"),
    ],
)
def test_a_lack_of_memory_is_named_with_its_remedy(reason: str, setting: str):
    assert with_remedy(reason).startswith(reason)
    assert setting in with_remedy(reason).removeprefix(reason)


def test_the_last_error_that_says_more_than_that_something_failed():
    assert cause_in(LOG) == "torch.OutOfMemoryError: CUDA out of memory."
    assert cause_in("all is well\nno Error here") is None


def test_a_killed_process_says_more_than_the_errors_that_follow():
    """The words of the pinned vLLM's multiproc_executor.py, of its engine core and of its client."""
    log = (
        "(EngineCore pid=7) ERROR 11-25 10:00:00 [multiproc_executor.py:315] Worker proc VllmWorker-1 died "
        "unexpectedly (exit code: -9), shutting down executor.\n"
        "(EngineCore pid=7) ERROR 11-25 10:00:01 [core.py:900] RuntimeError: cancelled\n"
        "ERROR 11-25 10:00:01 [async_llm.py:500] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
        "encountered an issue. See stack trace (above) for the root cause.\n"
    )
    cause = cause_in(log)
    assert cause == "Worker proc VllmWorker-1 died unexpectedly (exit code: -9)"
    assert "--mem in cluster.sbatch" in with_remedy(cause)
    assert cause_in(log.replace("Worker proc VllmWorker-1 died unexpectedly (exit code: -9)", "x")) == (
        "RuntimeError: cancelled"
    )
    bus = cause_in(log.replace("-9", "-7"))
    assert bus is not None
    assert "/dev/shm" in with_remedy(bus)
    assert "--mem" not in with_remedy(bus)


WATCHDOG = """\
[rank1]:[E1126 10:00:00 ProcessGroupNCCL.cpp:690] Watchdog caught collective operation timeout: WorkNCCL(
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 2 Rank 1] Process group watchdog thread terminated with exception: NCCL timeout
"""
FOLLOWS = """\
(EngineCore pid=7) ERROR 11-25 10:00:00 [multiproc_executor.py:315] Worker proc VllmWorker-1 died \
unexpectedly (exit code: -6), shutting down executor.
(EngineCore pid=7) ERROR 11-25 10:00:01 [core.py:900] RuntimeError: cancelled
"""


def test_a_process_that_ended_itself_had_said_why() -> None:
    """As NCCL's watchdog does, which aborts: not for lack of memory, and not by what followed."""
    cause = cause_in(WATCHDOG + FOLLOWS)
    assert cause.endswith("NCCL timeout")
    assert "NCCL_DEBUG" in with_remedy(cause)
    silent = cause_in(FOLLOWS)
    assert silent == "Worker proc VllmWorker-1 died unexpectedly (exit code: -6)"
    assert with_remedy(silent) == silent, "of an abort without words no cause is known"


def test_what_a_child_wrote_is_read_where_errors_are_a_file_and_nothing_elsewhere(tmp_path: Path):
    with (tmp_path / "errors").open("w") as errors:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], check=True, stderr=errors, stdout=subprocess.PIPE, text=True
        )
    assert done.stdout.splitlines() == ["MemoryError: of the child", "None"]
    piped = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert piped.stdout.splitlines() == ["None", "None"]
