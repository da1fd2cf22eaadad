"""Phantom cohorts as DICOM exports in four vendor dialects, with the truth in a separate file."""
