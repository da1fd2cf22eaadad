"""The steps of a sweep, run in one process or as SLURM jobs, and maintenance of a store."""
