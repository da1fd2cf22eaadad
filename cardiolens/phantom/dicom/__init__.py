"""The phantom as scanners would export it: DICOM in four dialects, with its truth beside it."""
