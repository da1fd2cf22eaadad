"""What a model is before it runs: its identity, files, chat template and token counts."""
