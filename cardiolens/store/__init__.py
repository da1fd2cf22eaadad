"""Care for a store: contents, verify, prune, compact, bundle."""
