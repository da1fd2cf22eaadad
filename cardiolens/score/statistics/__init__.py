"""Verdicts made into scores with intervals."""
