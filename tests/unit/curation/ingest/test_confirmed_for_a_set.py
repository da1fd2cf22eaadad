"""One decision for all studies of a set whose headers tell no position: nothing is turned over in silence."""

import json
from dataclasses import replace

import pytest

from cardiolens.curation.ingest.confirm_server import Change, Desk, read_imported
from cardiolens.curation.ingest.decisions import Choice, Ledger
from cardiolens.show.local_server import Request
from cardiolens.study.volume_manifest import DisplayTransform
from tests.support.sets.set_export import truth_of
from tests.support.sets.set_writers import SETS
from tests.unit.curation.ingest.set_phantoms import (
    frames_of_file,
    hearts,
    imported_set,
    in_format,
    proposals_of,
    study_of,
    volume_of,
)

SHOWN = DisplayTransform(transpose=True)


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
    trimmed = in_format(straight, form)
    SETS[form].write(tmp_path / "export", trimmed)
    truth = truth_of("PH-ICM-LAD", name, trimmed[0])
    out = imported_set(tmp_path / "export", tmp_path / "out")
    first, second = (study_of(out, form, name.format(number)) for number in (3, 6))
    assert not first.exists()
    assert not second.exists()
    desk = Desk(read_imported(out), Ledger(tmp_path / "decisions.jsonl"))
    study = next(each for each in desk.studies if each.study_id == first.name)
    for revision, proposal in enumerate(study.proposals):
        change = Change(
            study_id=study.study_id,
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
