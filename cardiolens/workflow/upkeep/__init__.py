"""Maintain a store: contents, verify, prune, compact."""
