"""What a store and a run keep on disk besides tables: places, configuration, manifest, log."""
