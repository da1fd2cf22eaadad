"""What a person sees on the terminal, and the frame of a verb."""
