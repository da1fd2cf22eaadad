"""Files of a store and a run: paths, tables, documents, temporary spools."""
