"""How a question and its frames are put into words."""
