"""The page on which a person confirms what the import proposes."""
