"""A paper's figures: numbers of the page's tables, the same bytes each time, legible in grey."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from page_run import finished, small_spec
from small_cohort import reader

from bench.claims import arms_of, compared, verdicts
from cardiolens.base.errors import InputError
from cardiolens.commands.export import main
from cardiolens.show.export.figures import (
    figures_of,
    pictures_of,
    specification,
    write_figures,
)
from cardiolens.show.page.elements import Record, described
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from cardiolens.storage.tables import from_rows

NAMES = ["landscape", "confusion", "cohorts", "forest"]


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return finished(small_spec(root, "figures", subtask=["C02", "D01"], control=["none"]))


@pytest.fixture(scope="module")
def facts(run: Run) -> Facts:
    """A run of simulated readers, with the scores of three models whose second prompt is better."""
    simulated = read_facts(run, [run])
    arms = arms_of(("clinical", "random@1"), ("16",), ("standard", "reasoning"), ["a", "b", "c"])
    rows = verdicts(arms, 60, np.random.default_rng([31, 1]), better=0.8)
    scores, comparisons = compared(arms, rows, 200, 200)
    comparisons += [difference(model, tier) for model in "ab" for tier in (1, 3)]
    return replace(
        simulated,
        arms=(*simulated.arms, *arms),
        scores=from_rows(scores, schemas.SCORES),
        comparisons=from_rows(comparisons, schemas.COMPARISONS),
    )


def difference(model: str, tier: int) -> dict[str, object]:
    """A row of the comparison of a full cohort with a part of it."""
    row = {"factor": "cohort", "level": "full", "versus": "public", "model": model, "metric": "primary"}
    values = {"tier": tier, "difference": 3.0, "low": -1.0, "high": 7.0, "decision": "open"}
    return row | values | {"n_items": 90, "n_patients": 60, "method": "made up", "simulated": False}


@pytest.fixture(scope="module")
def folder(facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_figures(Run(tmp_path_factory.mktemp("drawn")), facts)


@pytest.mark.full
def test_every_figure_is_there_in_both_forms(folder: Path) -> None:
    wanted = {f"{name}.{suffix}" for name in NAMES for suffix in ("svg", "pdf")}
    assert {path.name for path in folder.iterdir()} == wanted
    for name in NAMES:
        assert (folder / f"{name}.svg").read_text().startswith("<svg ")
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF-")
        assert b"FontFile" in (folder / f"{name}.pdf").read_bytes(), "letters are in the file"


def records(facts: Facts, name: str) -> Sequence[Record]:
    (figure,) = [figure for figure in figures_of(facts) if figure.name == name]
    return figure.records


def test_a_landscape_has_the_numbers_of_the_scores(facts: Facts) -> None:
    scores = {
        (row["arm_id"].removeprefix("headline:"), row["value"])
        for row in facts.scores.to_pylist()
        if row["arm_id"].startswith("headline:") and row["metric"] == "primary"
    }
    assert {(row["model"], row["value"]) for row in records(facts, "landscape")} == scores


def test_the_legend_of_the_landscape_names_the_tiers_that_were_asked(facts: Facts) -> None:
    (landscape,) = [figure for figure in figures_of(facts) if figure.name == "landscape"]
    *_, points = specification(landscape)["layer"]
    tiers = ["Tier 1 · findings", "Tier 3 · diagnosis"]
    assert [points["encoding"][name]["scale"]["domain"] for name in ("color", "shape")] == [tiers] * 2


def test_a_forest_has_every_model_and_their_mean(facts: Facts) -> None:
    rows = records(facts, "forest")
    assert {row["line"] for row in rows} == {"all models", "a", "b", "c"}
    assert {row["comparison"] for row in rows} == {
        *("reasoning prompt − standard", "random selection − clinical", "spread of the truth − of answers"),
    }


def test_a_row_of_the_confusion_is_a_whole(facts: Facts) -> None:
    totals: dict[object, float] = {}
    for record in records(facts, "confusion"):
        key = record["arm"], record["gold"]
        totals[key] = totals.get(key, 0) + float(record["share"] or 0)
    assert totals
    assert all(total == pytest.approx(100) for total in totals.values())
    assert {str(record["subtask"]).split()[0] for record in records(facts, "confusion")} == {"D01+D02"}


def lightness(colour: str) -> float:
    """L* of a colour: how light it is in print without colour."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


@pytest.mark.parametrize("together", [("c0", "c1", "c2"), ("c-shown", "c-equivalent", "c-open")])
def test_colours_that_stand_together_differ_in_grey(together: tuple[str, ...]) -> None:
    colours = described("print_theme.yaml")["colours"]
    for one, other in combinations(together, 2):
        assert abs(lightness(colours[one]) - lightness(colours[other])) > 20, (one, other)


def test_no_colour_is_left_to_a_style_sheet(facts: Facts) -> None:
    for figure in figures_of(facts):
        assert "var(" not in str(specification(figure))
        assert "var(" not in pictures_of(figure)[0]


def test_no_figure_holds_an_id(folder: Path, run: Run) -> None:
    studies = set(tables.read(run.verdicts, schemas.VERDICTS, ["study_id"])["study_id"].to_pylist())
    assert studies
    for path in folder.iterdir():
        if path.suffix != ".pdf":  # drawn from the picture
            assert not [study for study in studies if study in path.read_text()]


def test_what_a_run_does_not_allow_is_said(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = {path.stem for path in write_figures(run, read_facts(run, [run])).iterdir()}
    assert drawn == {"landscape", "confusion", "cohorts"}
    assert "forest: not drawn: the run has nothing to compare there" in capsys.readouterr().out


def test_several_runs_are_drawn_as_one_and_other_forms_take_one_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = run.root.parent.parent
    other = finished(
        small_spec(root, "other", subtask=["C02", "D01"], control=["none"], model=[reader("oracle")])
    )
    words = [f"runs=[{run.root},{other.root}]", "format=figures"]
    monkeypatch.setattr(sys, "argv", ["export", *words])
    assert main() == 0
    folder = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("export: "))
    drawn = (folder / "landscape.svg").read_text()
    assert all(f"{model}*" in drawn for model in ("noisy", "collapse", "oracle"))
    monkeypatch.setattr(sys, "argv", ["export", words[0]])
    assert main() == 2
    assert "format=files is of one run" in capsys.readouterr().err


def test_a_missing_package_is_named(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(InputError, match=r"pip install 'cardiolens\[figures\]'"):
        pictures_of(figures_of(facts)[0])
