"""Sentences and analyses: what scores support."""
