"""Print each check of a sweep, and what a run meets later: models, servers, studies, GPUs, disks, cluster."""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.phrasing import counted
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.http.transport import reach
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.identity import identify, installed_engine, unseparated
from cardiolens.inference.plan.candidates import weights_lacking
from cardiolens.runtime.connect import ray_cluster
from cardiolens.runtime.guard import folder_of_sockets
from cardiolens.runtime.nvidia_smi import gpus
from cardiolens.runtime.stopping import StoppedError
from cardiolens.storage.places import Store
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.steps.prepare_studies import is_prepared
from cardiolens.workflow.sweep_checks import CHECKS

_GIB = 2**30
_SHM_GIB = 1.0  # an engine over several GPUs exchanges through it; containers have 64 MiB by default
_FREE_GIB = 10.0  # completions, Ray's spilled frames, and what compilers write


def examine(spec: SweepSpec) -> int:
    """Print a line for each check of a sweep on this machine; 1 if one of them fails, else 0."""
    n_fix = 0
    for subject, look in _looks(spec):
        try:
            words = look()
            line = f"ok   {subject}: {words if isinstance(words, str) else 'as needed'}"
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - a template of a model is foreign code
            n_fix += 1
            kind = "" if isinstance(error, InputError | RunError | OSError) else f"{type(error).__name__}: "
            line = f"FIX  {subject}: {kind}{' '.join(str(error).split())}"
        say(line)
    for warning in unseparated(spec):
        say(f"note thinking: {warning}")
    say(f"{n_fix} to fix before a sweep" if n_fix else "nothing to fix")
    return 1 if n_fix else 0


def _looks(spec: SweepSpec) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is looked at, the cheap things first; nothing is loaded onto a GPU."""
    for subject, check in CHECKS.items():
        yield subject, partial(check, spec)
    if any(model.engine == "vllm" for model in spec.model):
        yield "engine", partial(_engine, spec)
    temporary = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp")
    for name, folder in (("store", spec.store), ("outputs", spec.outputs), ("temporary files", temporary)):
        yield f"disk of {name}", partial(_disk, folder)
    for model in spec.model:
        yield f"model {model.name}", partial(_model, spec, model)
    yield f"data set {spec.dataset.name}", partial(_data_set, spec)
    cluster = spec.cluster
    if isinstance(cluster, SlurmSpec):
        yield "SLURM", partial(_partitions, cluster)
    else:
        yield "Ray", partial(_ray, spec)


def _engine(spec: SweepSpec) -> str:
    """The installed vLLM; for CUDA also GPUs with memory to spare, and shared memory."""
    flavour, number = installed_engine()
    if flavour != "cuda":
        return f"vLLM {number} for {flavour}"
    visible = gpus()
    if not visible:
        raise InputError(
            "nvidia-smi lists no GPU that may be used (CUDA_VISIBLE_DEVICES), or does not answer; install "
            "the driver, or run where there are GPUs"
        )
    share = max(model.gpu_memory_utilization for model in spec.model if model.engine == "vllm")
    for gpu in visible:
        if not gpu.has_free(share):
            raise InputError(
                f"{gpu.name} has {gpu.free_gib:.1f} of {gpu.total_gib:.1f} GiB free, and an engine wants "
                f"{share:.0%}: end what runs there (nvidia-smi), or lower gpu_memory_utilization"
            )
    shared = shutil.disk_usage("/dev/shm").free / _GIB
    if shared < _SHM_GIB:
        raise InputError(
            f"/dev/shm has {shared:.2f} GiB free, {_SHM_GIB:g} GiB wanted; give a container more "
            "(--ipc=host, --shm-size)"
        )
    return f"vLLM {number} for CUDA, {counted(len(visible), 'GPU')}, {shared:.0f} GiB of /dev/shm"


def _disk(folder: Path) -> str:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.exists(path))
    if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{there} is no folder that can be written; name another folder")
    free = shutil.disk_usage(there).free / _GIB
    short = "; free space before a long run" if free < _FREE_GIB else ""
    return f"{free:.1f} GiB free in {there}{short}"


def _model(spec: SweepSpec, model: ModelSpec) -> str:
    """Files with their digests, and one rendered prompt, or the server's list of models."""
    identity = identify(model, Store(spec.store).models)
    if lacking := weights_lacking(model, identity.folder):
        raise InputError(lacking)
    if model.engine == "http":
        return f"{identity.model_key}; {reach(model)}"
    if model.engine == "vllm" and identity.folder is not None:
        Chat(identity.folder, model).prompt("You read cardiac MRI.", "Which is it?\nA. Normal")
    return f"{identity.model_key}, {identity.folder or 'no files'}"


def _data_set(spec: SweepSpec) -> str:
    if not is_prepared(spec):
        return f"not prepared yet: a sweep does it, or python -m cardiolens.prepare; store {spec.store}"
    cohort = read_cohort(spec.store)
    studies, failed = (len(cohort.studies), len(cohort.failed)) if cohort else (0, 0)
    return f"{counted(studies, 'study')} prepared in {spec.store}, {failed} failed"


def _partitions(cluster: SlurmSpec) -> str:
    return f"partitions {', '.join(commands.check_partitions(cluster))}; mode=plan shows the jobs"


def _ray(spec: SweepSpec) -> str:
    """Start Ray, or connect to the cluster that is named, with its token."""
    import ray

    if spec.cluster.address is None:
        folder_of_sockets(os.environ)
    with ray_cluster(spec.cluster):
        resources = ray.cluster_resources()
    where = "on this machine" if spec.cluster.address is None else f"at {spec.cluster.address}"
    return f"{where}, {resources.get('CPU', 0):g} CPUs, {resources.get('GPU', 0):g} GPUs"
