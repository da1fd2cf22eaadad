"""A sweep from beginning to end: its steps in one process, the same as SLURM jobs, upkeep of a store."""
