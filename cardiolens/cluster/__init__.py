"""The Ray cluster of a verb, ending early in good order, and copies on a node's own disk."""
