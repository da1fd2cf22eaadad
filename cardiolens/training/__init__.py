"""Training of the small reader that this package ships: from phantom cohorts to a model that vLLM serves."""
