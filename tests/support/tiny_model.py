"""The tiny model of this package: its files, and the module of the example that made them."""

import importlib
import sys
from pathlib import Path

import cardiolens

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "train_reader"))

FOLDER = Path(cardiolens.__file__).parent / "inference" / "models" / "packaged" / "tiny"
tiny = importlib.import_module("train_reader.tiny")
