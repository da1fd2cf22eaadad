"""What only a person knows: voxel size, slice order and masks, for one study or for all of a source."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cardiolens.curation.ingest.confirm_server import Change, Desk, carried_over, read_imported
from cardiolens.curation.ingest.decisions import Choice, Ledger
from cardiolens.show.local_server import Request
from cardiolens.study.volume_manifest import DisplayTransform
from tests.support.sets.set_export import truth_of
from tests.support.sets.set_writers import SETS
from tests.unit.curation.ingest.set_phantoms import (
    frames_of_file,
    hearts,
    imported_set,
    manifest_of,
    proposals_of,
    study_of,
    volume_of,
    write_set,
)

pytestmark = pytest.mark.full

SHOWN = DisplayTransform(transpose=True)


@pytest.fixture(scope="module")
def waiting(tmp_path_factory) -> Path:
    """Two patients whose headers contradict themselves, imported without a layout: both wait."""
    root = tmp_path_factory.mktemp("waiting")
    write_set(hearts(("PH-NORMAL", "PH-ICM-LAD")), "acdc", root / "in")
    for path in (root / "in").rglob("*_4d.nii.gz"):  # only a name tells a cine from a first pass
        path.rename(path.with_name(path.name.replace("4d", "4d_cine")))
    imported_set(root / "in", root / "out", layout="none")
    return root


def open_stacks(root: Path) -> dict[str, dict]:
    """The stack that waits, by study."""
    stacks = {}
    for path in (root / "out").glob("proposals/*/proposals.json"):
        [proposal] = [each for each in json.loads(path.read_text())["proposals"] if each["status"] == "waits"]
        stacks[path.parent.name] = proposal
    return stacks


def choice(**changes: object) -> Choice:
    whole = {"sequence": "cine", "view": "sax", "display": SHOWN, "along_normal": True}
    return Choice(status="confirmed", **(whole | {"spacing": "pixdim", "base_first": True} | changes))


def decided(root: Path, choices: dict[str, Choice]) -> list[dict]:
    """Import again with decisions; return the manifests of studies that came in."""
    ledger = Ledger(root / "decisions.jsonl")
    for study, made in choices.items():
        ledger.decide(study, {open_stacks(root)[study]["stack"]: made})
    ledger.close()
    out = imported_set(root / "in", root / "out", layout="none", decisions=root / "decisions.jsonl")
    (root / "decisions.jsonl").unlink()
    trees = [manifest_of(path.parent) for path in sorted(out.glob("studies/*/study.json"))]
    imported_set(root / "in", root / "out", layout="none")
    return trees


def test_a_header_in_two_minds_waits_and_says_what_each_place_tells(waiting):
    for proposal in open_stacks(waiting).values():
        assert proposal["reason"] == "no_position"
        assert "spacing_unsettled" in proposal["flags"]
        assert proposal["places_mm"]["sform"] == [1.0, 1.0, 1.0]
        assert proposal["places_mm"]["pixdim"][:2] == pytest.approx([3.2, 3.2])
        assert proposal["entry"]["spacing_mm"][:2] == pytest.approx([3.2, 3.2]), "the proposal"


@pytest.mark.parametrize(
    ("spacing", "expected"), [("pixdim", [3.2, 3.2, 9.35556]), ((2.0, 2.0, 8.0), [2.0, 2.0, 8.0])]
)
def test_a_stated_voxel_size_and_order_are_applied(waiting, spacing, expected):
    stacks = open_stacks(waiting)  # their ids follow from the key of the import, which is drawn anew
    study = min(stacks, key=lambda each: stacks[each]["places_mm"]["pixdim"][2])
    [tree] = decided(waiting, {study: choice(spacing=spacing)})
    [volume] = tree["volumes"]
    assert volume["spacing_mm"] == pytest.approx(expected, rel=1e-4)
    assert volume["spatial_order"] == "base_to_apex"


@pytest.mark.parametrize("spacing", [None, "sform_of_another"])
def test_a_decision_that_leaves_the_voxel_size_open_is_refused(waiting, spacing, capsys):
    study = min(open_stacks(waiting))
    if spacing is not None:
        with pytest.raises(ValueError, match="spacing"):
            choice(spacing=spacing)
        return
    assert decided(waiting, {study: choice(spacing=None)}) == []
    assert "the size of its voxels is not settled by it; state spacing" in capsys.readouterr().out


def test_a_decision_is_carried_to_all_studies_of_the_source(waiting, tmp_path):
    desk = Desk(waiting / "out", read_imported(waiting / "out"), Ledger(tmp_path / "decisions.jsonl"))
    first, second = desk.studies
    stack = open_stacks(waiting)[first]["stack"]
    made = choice(ed_phase=0, es_phase=4)
    change = Change(study_id=first, revision=0, stacks={stack: made}, everywhere=True)
    reply = desk.decide(Request(("decide",), body=change.model_dump_json().encode()))
    assert set(json.loads(reply.body)["others"]) == {second}
    [carried] = desk.ledger.decisions.of(second).values()
    assert (carried.spacing, carried.base_first, carried.display) == ("pixdim", True, SHOWN)
    assert (carried.ed_phase, carried.es_phase) == (None, None), "phases belong to one study"
    desk.ledger.close()


def test_millimetres_of_one_study_are_not_those_of_another(waiting):
    proposal = next(iter(open_stacks(waiting).values()))
    assert carried_over(choice(spacing=(2.0, 2.0, 8.0)), proposal, proposal) is None
    assert carried_over(choice(), proposal, proposal | {"places_mm": {}}) is None
    assert carried_over(choice(), proposal, proposal | {"phases": 1}) is None


def test_a_display_as_it_was_found_stays_so_in_other_studies(waiting):
    proposal = next(iter(open_stacks(waiting).values()))
    found = proposal["entry"]["display_transform"] | {"flip_rows": True}
    there = proposal | {"entry": proposal["entry"] | {"display_transform": found}}
    assert carried_over(choice(), proposal, there).display == DisplayTransform(**found)
    assert carried_over(choice(display=DisplayTransform(flip_cols=True)), proposal, there) is None


def accepted(proposal: dict) -> Choice:
    """What the page sends where a person accepts a series as it is shown."""
    return Choice(
        status="confirmed",
        sequence=proposal["sequence"],
        view=proposal["view"],
        display=SHOWN,
        along_normal=proposal["along_normal"],
        base_first=proposal["entry"]["spatial_order"] == "base_to_apex",
        mask=True if proposal["masked"] else None,
    )


@pytest.mark.parametrize("form", ["mscmr", "myops"])
def test_one_decision_settles_a_set_that_holds_both_directions(tmp_path, form):
    [heart] = hearts(("PH-ICM-LAD",))
    straight = [replace(heart, number=3), replace(heart, number=6)]  # from the base, and from the apex
    name = {"mscmr": "patient{}", "myops": "10{}"}[form]
    trimmed = [SETS[form].of(subject) for subject in straight]
    SETS[form].write(tmp_path / "export", trimmed)
    truth = truth_of("PH-ICM-LAD", name, trimmed[0])
    out = imported_set(tmp_path / "export", tmp_path / "out")
    first, second = (study_of(out, form, name.format(number)) for number in (3, 6))
    assert not first.exists()
    assert not second.exists()
    desk = Desk(out, read_imported(out), Ledger(tmp_path / "decisions.jsonl"))
    for revision, proposal in enumerate(desk.studies[first.name].values()):
        change = Change(
            study_id=first.name,
            revision=revision,
            stacks={proposal["stack"]: accepted(proposal)},
            everywhere=True,
        )
        reply = desk.decide(Request(("decide",), body=change.model_dump_json().encode()))
        told = json.loads(reply.body)
        assert set(told.get("others", {})) == {second.name}, told
    desk.ledger.close()
    imported_set(tmp_path / "export", out, decisions=tmp_path / "decisions.jsonl")
    for folder in (first, second):
        for volume_id, expected in truth["volumes"].items():
            volume = volume_of(folder, volume_id)
            assert volume["spatial_order"] == "base_to_apex"
            assert frames_of_file(folder / volume["path"]) == expected["frames"]
            assert "mask" in volume
        assert {each["status"] for each in proposals_of(out, folder)} == {"taken"}
