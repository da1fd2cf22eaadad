"""Judging: verdicts from replies."""
