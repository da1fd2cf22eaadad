"""Tasks: the catalogue of subtasks, question files, and the truth behind phantom questions."""
