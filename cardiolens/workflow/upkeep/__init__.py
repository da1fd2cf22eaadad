"""Maintenance of a store: contents, verify, prune, compact, bundle."""
