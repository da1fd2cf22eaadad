"""The tiny model of the package: its files are those that the example makes."""

from pathlib import Path

import pytest

from tests.support.tiny_model import FOLDER, tiny


@pytest.mark.full
def test_the_packaged_files_are_what_the_example_makes(tmp_path: Path) -> None:
    tiny.build(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in FOLDER.iterdir()}
