"""Import an export as studies: find, read, group, classify, orient, de-identify and write."""
