"""The one door for what strangers made: files, archives, JSON, YAML, CSV, images, DICOM, gzip.

Nothing else in the package opens, unpacks or parses such content (tests/unit/test_architecture.py). Every
reader has a bound in bytes and raises OSError, ValueError or MemoryError, never hangs on a pipe or device.
"""
