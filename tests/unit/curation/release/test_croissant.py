"""The metadata of a release, read by the library of Croissant."""

import json
import re
from pathlib import Path

import mlcroissant
import pytest

from cardiolens.curation.release.croissant import _version
from tests.unit.curation.release.released_phantoms import COHORTS, release_phantoms

# Of what mlcroissant 1.1.1 still uses: rdflib warns of a class of its own, pandas of an argument.
pytestmark = [
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]


@pytest.fixture(scope="module", params=["frames=true", "frames=false"])
def released(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_phantoms(tmp_path_factory.mktemp("release"), request.param)


@pytest.mark.full
def test_it_validates_without_errors_or_warnings_and_its_records_load(released: Path) -> None:
    dataset = mlcroissant.Dataset(jsonld=str(released / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    facts = json.loads((released / "release.json").read_text())
    for cohort in COHORTS:
        records = list(dataset.records(cohort))
        assert len(records) == facts["cohorts"][cohort]["questions"]
        assert {record[f"{cohort}/canary"] for record in records} == {facts["canary"].encode()}
        first = records[0]
        assert {option[f"{cohort}/options/key"] for option in first[f"{cohort}/options"]} > {b"A", b"B"}
        assert (f"{cohort}/frames" in first) == bool(facts["frames"])
        if facts["frames"]:
            assert first[f"{cohort}/frames"][0].format == "PNG"


def test_it_says_what_responsible_use_asks_and_nothing_that_the_facts_do_not(released: Path) -> None:
    told = json.loads((released / "croissant.json").read_text())
    metadata = mlcroissant.Dataset(jsonld=told).metadata
    assert metadata.data_limitations == told["rai:dataLimitations"]
    assert "phantom" in metadata.data_collection
    (agreement,) = told["rai:dataAnnotationAnalysis"]
    assert agreement.startswith("Kappa of two readers in the batch, ")
    assert agreement.endswith(" questions: not measured")
    assert told["rai:dataBiases"] == ["Sex, age, scanner and site of the studies are not told."]
    assert told["license"] == "https://spdx.org/licenses/CC-BY-4.0.html"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", told["datePublished"])


@pytest.mark.parametrize(("number", "version"), [("1", "1.0.0"), ("1.2", "1.2.0"), ("1.2.3.4", "1.2.3.4")])
def test_a_version_has_three_numbers(number: str, version: str) -> None:
    assert _version(number) == version
