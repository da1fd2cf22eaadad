"""Prepare studies: from study.json and NIfTI files to displayed frames in shards."""
