"""What answers requests: vLLM, and simulated readers with a known result."""
