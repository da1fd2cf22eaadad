"""Tasks: the catalogue of subtasks, and questions made from the truth."""
