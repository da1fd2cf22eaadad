"""Prompts: a question and its frames put into words."""
