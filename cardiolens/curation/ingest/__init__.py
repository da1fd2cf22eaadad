"""An export becomes studies: found, read, grouped, classified, oriented, de-identified, written."""
