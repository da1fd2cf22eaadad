"""The sections of a page, each a pure function of the facts."""
