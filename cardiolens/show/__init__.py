"""What people see: the result page, exports, the terminal, experiment trackers, the notebook."""
