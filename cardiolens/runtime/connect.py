"""Connect a command to a Ray cluster: start one on this machine, or join one by address."""

import logging
import os
import re
import socket
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from cardiolens.base.errors import RunError
from cardiolens.base.import_path import imports_from_working_folder
from cardiolens.config.cluster import ClusterSpec
from cardiolens.runtime.guard import guarded, ray_changed, unproxied, use_token
from cardiolens.runtime.stopping import StoppedError

log = logging.getLogger(__name__)

_HOST_AND_PORT: Final = re.compile(r"(?:ray://)?\[?([^\[\]/]+?)\]?:(\d+)")
_ANSWER_SECONDS: Final = 10.0  # for a connection; Ray itself tries a dead address for minutes

# No usage reports, error reports or look-ups: nothing about a hospital's work may leave the machine.
# The other variables silence libraries, so that the terminal shows only the stream's own reports.
QUIET_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9",  # `ray start` reports even that usage reports are off
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "WANDB_ERROR_REPORTING": "false",  # W&B resolves the host of its error reports even offline
    "HF_HUB_OFFLINE": "1",  # a sweep downloads nothing
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",  # at Ray's 15, any other program on the machine would starve an engine
}


_ENGINES_READ = ("VLLM_", "HF_", "OMP_NUM_THREADS", "PYTHONSAFEPATH")
_SECRETS = ("TOKEN", "KEY", "SECRET", "PASSWORD")  # Ray logs the variables that it passes to workers


def for_workers(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for workers and engines on every node: the quiet ones, and the user's for vLLM.

    The user's values take precedence. Secrets are not passed on: each node's environment must set them.
    """
    own = {
        name: value
        for name, value in environment.items()
        if name.startswith(_ENGINES_READ) and not any(word in name for word in _SECRETS)
    }
    quiet = {name: environment.get(name, value) for name, value in QUIET_ENVIRONMENT.items()}
    return quiet | own


def be_quiet() -> None:
    """Set the variables that libraries read on import; variables that the user set are kept."""
    os.environ.update({name: value for name, value in QUIET_ENVIRONMENT.items() if name not in os.environ})
    os.environ.update(unproxied(os.environ))


@contextmanager
def ray_cluster(spec: ClusterSpec) -> Iterator[None]:
    """Connect to Ray for the block; an existing connection is reused and stays open afterwards.

    StoppedError if SIGTERM arrives while Ray starts; RunError if Ray cannot be reached or started.
    """
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.update(unproxied(os.environ))
    with ExitStack() as own:
        try:
            if spec.address is None:
                own.enter_context(guarded())
                _start()
            else:
                _join(spec.address)
        except SystemExit:  # by Ray's own handler of SIGTERM during its start
            raise StoppedError("before Ray had started; the same command goes on") from None
        _quieten()
        try:
            yield
        finally:
            ray.shutdown()


_OPEN = (
    "no token is shown to this Ray cluster; if it asks for none, whoever reaches its ports can run programs "
    "as the person who started it: start it with python -m cardiolens.head (docs/guides/gpus.md)"
)


def check_answers(address: str) -> None:
    """RunError if nothing listens at a host and port; an address of another form is left to Ray."""
    place = _HOST_AND_PORT.fullmatch(address)
    if place is None:
        return
    try:
        socket.create_connection((place[1], int(place[2])), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise RunError(
            f"cluster.address={address}: no Ray cluster answers there ({error}); start one with python -m "
            "cardiolens.head, or leave cluster.address out"
        ) from None


def _connect(address: str, **options: object) -> None:
    import ray

    workers: dict[str, object] = {"env_vars": for_workers(os.environ)}
    if address != "local":  # local workers inherit umask and folder of the driver, others of who began it
        mask, folder = os.umask(0o077), os.getcwd()
        os.umask(mask)

        def begin() -> None:
            os.umask(mask)
            with suppress(OSError):  # a folder of this machine alone; then no path may be relative to it
                os.chdir(folder)

        workers["worker_process_setup_hook"] = begin
    job = ray.job_config.JobConfig()
    if not imports_from_working_folder():
        job._py_driver_sys_path = _WithoutWorkingFolder()  # no option of Ray leaves it out
    with _muted_stderr():
        ray.init(
            address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env=workers,
            job_config=job,
            **options,
        )


class _WithoutWorkingFolder(list[str]):
    """The folders that Ray puts first on the path of a job's workers, the working folder left out.

    Workers import NumPy and others before CardioLens, so they could not drop the folder in time.
    """

    def extend(self, names: Iterable[str]) -> None:
        """Add the folders except the working folder."""
        super().extend(name for name in names if name != os.path.abspath(os.curdir))


def _start() -> None:
    try:
        _connect("local", include_dashboard=False, **allocated(os.environ))
    except Exception as error:  # Ray raises nothing more specific
        raise RunError(
            f"Ray could not be started on this machine ({_first_line(error)}); is it short of "
            "memory, of space in /tmp, or very busy?"
        ) from error


def _join(address: str) -> None:
    check_answers(address)
    if not use_token(os.environ):
        log.warning("cluster.address=%s: %s", address, _OPEN)
    try:
        with ray_changed(loopback=True):
            _connect(address)
    except Exception as error:
        refused = "AuthenticationError" in "".join(traceback.format_exception(error))  # which Ray wraps
        said = f"no Ray cluster answers there ({_first_line(error)})"
        if refused:
            said = "the Ray cluster there wants another token; set RAY_AUTH_TOKEN_PATH to its file"
        raise RunError(f"cluster.address={address}: {said}") from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextmanager
def _muted_stderr() -> Iterator[None]:
    """Discard stderr for the block: Ray's core announces its log level there at any level."""
    stderr, devnull = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(devnull)


def _quieten() -> None:
    """Turn off the progress bars and warnings of Ray Data: the stream reports progress itself."""
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # The stream reports a failure in one line; Ray keeps the details in its own log files.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)


def allocated(environment: Mapping[str, str]) -> dict[str, int]:
    """Return `num_cpus` and `num_gpus` that SLURM allocated on this node; empty outside a job.

    By default Ray would use all CPUs of the machine, and all its GPUs if a job without GPUs has no
    CUDA_VISIBLE_DEVICES.
    """
    if "SLURM_JOB_ID" not in environment:
        return {}
    cpus = environment.get("SLURM_CPUS_PER_TASK") or environment.get("SLURM_CPUS_ON_NODE", "1")
    return {"num_cpus": int(cpus), "num_gpus": int(environment.get("SLURM_GPUS_ON_NODE") or 0)}
