"""Errors of the reports that models wrote, by a language model as judge."""
