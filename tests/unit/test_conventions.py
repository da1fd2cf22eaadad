"""What strangers look for at the root of a project: present, readable by machines, and true."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

import cardiolens

ROOT = Path(__file__).resolve().parents[2]


def test_make_has_the_verbs_of_the_guide() -> None:
    verbs = set(re.findall(r"^(?:make (\S+))", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert verbs == {"setup-dev", "check", "test", "test-all", "test-long"}
    for verb in verbs:
        subprocess.run(["make", "-n", verb], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize(
    "file",
    [ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml", *ROOT.glob(".github/**/*.yml")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_forms_are_yaml(file: Path) -> None:
    assert isinstance(yaml.safe_load(file.read_text()), dict)


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == cardiolens.__version__
    assert cited["version"] in (ROOT / "CHANGELOG.md").read_text()
