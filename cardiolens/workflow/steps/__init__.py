"""The steps of a sweep; `sweep` runs all of them in one process, `slurm.job_steps.work` one per job."""
