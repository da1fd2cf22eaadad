"""Plans: one request per question and arm, each with a key that identifies its content."""
