"""Sweeps as jobs of a SLURM cluster: submission, the work of each job, status."""
