"""Replies made into verdicts."""
