"""Terminal output, and the common frame of the verbs."""
