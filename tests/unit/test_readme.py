"""The README: short, and its file and its sweeps work as they are written."""

import re
import shlex
from pathlib import Path

import pytest

from cardiolens.config.compose import read_spec

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
SWEEPS = re.findall(r"^python -m cardiolens\.sweep (.*?)(?:  #.*)?$", README.replace("\\\n", " "), re.M)


@pytest.fixture
def own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model file of the README, in the folder that one works in."""
    (yaml,) = re.findall(r"```yaml\n# (\S+), in the folder that you work in\n(.*?)```", README, re.S)
    path = tmp_path / yaml[0]
    path.parent.mkdir(parents=True)
    path.write_text(yaml[1])
    monkeypatch.chdir(tmp_path)


def test_the_readme_has_at_most_700_words() -> None:
    assert len(README.split()) <= 700
    assert len(SWEEPS) == 4


@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.usefixtures("own_model")
def test_a_sweep_of_the_readme_is_understood(sweep: str) -> None:
    spec = read_spec(shlex.split(sweep))
    (model,) = spec.model
    assert model.name == "my_model"
    assert model.http is not None
