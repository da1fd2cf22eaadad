"""A synthetic cohort whose answers are known exactly."""
