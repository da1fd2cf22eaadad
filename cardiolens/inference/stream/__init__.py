"""The pipeline of one model: from missing requests to completions on disk."""
