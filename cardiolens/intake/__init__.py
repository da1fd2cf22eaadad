"""An export of a hospital becomes studies: found, read, grouped, classified, oriented, de-identified, written."""
