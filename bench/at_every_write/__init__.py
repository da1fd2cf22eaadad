"""Faults at every change of the disk: the process that meets one, the verbs that run in it, what must be equal."""
