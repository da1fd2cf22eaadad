"""Pure functions that decide which model runs on which GPUs, and when."""
