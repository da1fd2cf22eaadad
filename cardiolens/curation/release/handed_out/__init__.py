"""Files that task folders hold: they stand alone, and import nothing of CardioLens."""
