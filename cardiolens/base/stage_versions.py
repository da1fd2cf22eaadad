"""Versions of the stages with kept results: raise one by hand when its stage gives other results.

A kept result of another version is made again. The goldens hold the versions: a golden that changes while the
version of its stage stays is an error (tests/golden/goldens.py).
"""

from typing import Final

PREPARED: Final = "1"  # a study's frames: study/
PLAN: Final = "2"  # requests: protocol/, inference/plan
IMPORT: Final = "5"  # studies of an export: curation/ingest
DRAFTS: Final = "4"  # questions of reports and masks: curation/questions
