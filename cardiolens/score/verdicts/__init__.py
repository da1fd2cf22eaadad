"""From replies to verdicts."""
