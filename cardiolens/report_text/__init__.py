"""Findings of report text by rules: words, clauses, assertion, subjects and places (protocol 3.2)."""
