"""The steps of a sweep; `workflow.sweep` runs all of them in one process, `slurm.job_steps` one per job."""
