"""Free-text reports of phantom studies in the style of radiologists, each with its exact truth."""
