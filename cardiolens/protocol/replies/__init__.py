"""Reading of replies."""
