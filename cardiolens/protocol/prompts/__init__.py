"""Prompts: a question and its frames rendered as messages."""
