"""The steps of a sweep, run in one process by `sweep` and one a job by `work`."""
