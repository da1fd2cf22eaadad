"""Synthetic cohorts of cardiac MRI studies with exactly known answers."""
