"""Files of a store and of a run besides tables: places, configuration, manifest, log."""
