"""The model families of the catalogue without their weights: templates, processors, tokens."""
