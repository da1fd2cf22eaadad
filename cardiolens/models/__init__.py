"""A model before it runs: its identity, files, chat template and token counts."""
