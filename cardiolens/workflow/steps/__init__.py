"""The steps of a sweep: `sweep` runs all in one process, `work` one per job."""
