"""The HTML page of a run, and the case viewer beside it."""
