"""Judges of MedThinkVQA: steps of reasoning, and discussions (protocol 16.17)."""
