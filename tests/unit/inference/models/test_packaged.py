"""The model that comes with the package: its files, its record, and names that are not there."""

import json
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.inference.models.identity import absence, identify, ships

MOST = 12 * 2**20  # bytes


def test_the_small_reader_is_small_and_says_how_it_was_made(tmp_path: Path):
    (model,) = read_spec(["model=[reader_small]"]).model
    assert absence(model) is None
    folder = identify(model, tmp_path).folder
    assert folder is not None
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST
    record = json.loads((folder / "training.json").read_text())
    assert record["hours"] <= 2
    assert {line["stage"] for line in record["curve"]} == {"see", "read"}


def test_a_name_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path):
    assert ships("packaged/none")
    (model,) = read_spec(["model=[reader_small]", "model.reader_small.source=packaged/none"]).model
    with pytest.raises(InputError, match=r"'packaged/none' is not in this package, which has pack"):
        identify(model, tmp_path)
