"""Runs in a notebook: Arrow tables, Altair figures, cases with an HTML representation."""
