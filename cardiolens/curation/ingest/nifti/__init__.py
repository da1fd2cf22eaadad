"""NIfTI files of an export become the same frame records as DICOM files."""
