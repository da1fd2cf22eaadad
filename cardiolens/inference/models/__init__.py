"""Everything about a model that is known before it runs: identity, files, chat template, token counts."""
