"""Weights & Biases: how its runs are opened, and what it is told while models answer."""
