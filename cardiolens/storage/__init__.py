"""Paths of a store and a run, and the files of a run besides its tables."""
