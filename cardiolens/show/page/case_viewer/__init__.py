"""The case viewer: frames, question, reply and truth of one item."""
