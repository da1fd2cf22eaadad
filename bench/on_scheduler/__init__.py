"""Simulations that drive the scheduler of the installed vLLM, with its own caches, and compute no token."""
