"""Sweeps as SLURM jobs: submission, the work of each job, status."""
