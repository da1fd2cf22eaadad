"""Models before they run: identity, files, chat template and token counts."""
