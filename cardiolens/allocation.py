"""What SLURM gave this process: a Ray that is started within a job must take no more than that."""

from collections.abc import Mapping


def allocated(environment: Mapping[str, str]) -> dict[str, int]:
    """`num_cpus` and `num_gpus` for Ray on this node of a job; nothing outside one.

    By itself Ray would take all processors of the machine, and all its GPUs where a job without GPUs has no
    CUDA_VISIBLE_DEVICES.
    """
    if "SLURM_JOB_ID" not in environment:
        return {}
    cpus = environment.get("SLURM_CPUS_PER_TASK") or environment.get("SLURM_CPUS_ON_NODE", "1")
    return {"num_cpus": int(cpus), "num_gpus": int(environment.get("SLURM_GPUS_ON_NODE") or 0)}
