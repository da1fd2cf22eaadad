"""Goldens: small frozen results that the product must keep giving, each with the command that made it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))  # helpers of the unit tests
