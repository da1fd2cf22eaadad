"""The terminal: tables, progress, and the frame of a verb."""
