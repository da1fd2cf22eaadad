"""Free-text reports of phantom studies as radiologists write them, each with its exact truth beside it."""
