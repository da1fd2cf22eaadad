"""Tables of a run for other programs: CSV, JSON Lines, LaTeX, inspect_ai logs."""
