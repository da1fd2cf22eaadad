"""Outputs for people: result page, exports, terminal, experiment trackers, notebook."""
