"""Parts of bench/gpu.py: models in real sizes, an engine that notes its times, the busy share of GPUs."""
