"""Review by people on a local page: verify draft questions, and read questions as models do."""
