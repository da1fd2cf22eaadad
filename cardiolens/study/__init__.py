"""Studies as they lie on disk (study.json and NIfTI) made into displayed frames."""
