"""Questions about texts through the inference stream and its store."""
