"""What is asked: the catalogue of subtasks, and questions made from the truth."""
