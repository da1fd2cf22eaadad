"""The Ray cluster of a verb, its orderly stop, and copies of files on a node's own disk."""
