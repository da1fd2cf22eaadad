"""Probes of leakage: what models answer of drafts without images."""
