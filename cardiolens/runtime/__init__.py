"""Ray connection, graceful stop, and worker processes."""
