"""Engines that answer requests: vLLM, servers behind HTTP, and simulated readers with a known result."""
