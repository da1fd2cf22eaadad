"""The mirror of runs in Weights & Biases, during and after a sweep."""
