"""Questions x arms made into requests, each with the key of what it asks."""
