"""People verify draft questions, and read questions as models do, on a page of this machine."""
