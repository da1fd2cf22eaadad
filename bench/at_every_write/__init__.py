"""Faults at every change of the disk: the process, the verbs that run in it, what must be equal."""
