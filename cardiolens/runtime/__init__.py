"""Ray connection, graceful stop, worker processes, and copies of files on a node's local disk."""
