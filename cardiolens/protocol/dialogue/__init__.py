"""Multi-turn requests: chains, frame requests, transcripts."""
