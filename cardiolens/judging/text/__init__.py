"""Findings of report text by rules: words, clauses, what is meant, of what and where (protocol 3.2)."""
