"""Plans: questions x arms as requests, each with a key that identifies its content."""
