"""From scores to analyses and claims in sentences."""
