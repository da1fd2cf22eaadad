"""From a sweep to the jobs of a SLURM cluster."""
