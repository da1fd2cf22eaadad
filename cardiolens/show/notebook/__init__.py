"""Runs in a notebook: tables as Arrow, figures as Altair, cases that show themselves."""
