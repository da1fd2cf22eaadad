"""Training of the small reader: from phantom cohorts to a model that vLLM serves."""
