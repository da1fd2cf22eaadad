"""Engines that answer requests: vLLM, HTTP servers, and simulated readers with a known result."""
