"""Decisions of a person: the file that keeps them, and what the import makes of them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.confirm_server import read_imported, sheet
from cardiolens.curation.ingest.conventions import legal_volumes
from cardiolens.curation.ingest.decisions import Choice, Decisions, Ledger, read_decisions
from cardiolens.curation.ingest.import_run import ingest
from cardiolens.study.manifest import read_study
from cardiolens.study.volume_manifest import DisplayTransform
from tests.unit.curation.ingest.exports import (
    CURRENT,
    LGE,
    NORMAL,
    SHORT_AXIS,
    builds,
    healthy,
    proposals,
    series,
)

EXCLUDED = Choice(status="excluded")


def confirmed(volume: str = "cine sax", **changes: object) -> Choice:
    sequence, view = volume.split()
    said = {"display": DisplayTransform(), "along_normal": True, **changes}
    return Choice(status="confirmed", sequence=sequence, view=view, **said)


CHOICES = (
    st.none() | st.just(EXCLUDED) | st.sampled_from([*map(" ".join, legal_volumes().values())]).map(confirmed)
)
LINES = st.lists(
    st.tuples(
        st.sampled_from("ST"), st.dictionaries(st.sampled_from("ab"), CHOICES, min_size=1) | st.just("undo")
    )
)


def write(ledger: Ledger, lines: list) -> dict:
    """Append lines, and say what they must come to: a stack of states for each study."""
    states: dict[str, list[dict]] = {"S": [{}], "T": [{}]}
    for study, said in lines:
        if said != "undo":
            ledger.decide(study, said)
            merged = {**states[study][-1], **said}
            states[study].append({name: choice for name, choice in merged.items() if choice is not None})
        elif len(states[study]) > 1:
            ledger.undo(study)
            states[study].pop()
        else:
            with pytest.raises(InputError, match="taken back"):
                ledger.undo(study)
    return {study: each[-1] for study, each in states.items()}


def as_they_stand(decisions: Decisions) -> dict:
    return {study: dict(decisions.of(study)) for study in "ST"}


@given(lines=LINES, data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_cut_anywhere_holds_every_whole_line_and_goes_on(tmp_path: Path, lines, data):
    path = tmp_path / "decisions.jsonl"
    path.unlink(missing_ok=True)
    ledger = Ledger(path)
    expected = write(ledger, lines)
    ledger.close()
    assert as_they_stand(read_decisions(path)) == expected
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    kept = content[: content[:cut].rfind(b"\n") + 1] if content[cut : cut + 1] != b"\n" else content[:cut]
    before = as_they_stand(read_decisions(path))
    ledger = Ledger(path)
    ledger.decide("S", {"new": EXCLUDED})
    ledger.close()
    assert path.read_bytes().startswith(kept)
    before["S"] = {**before["S"], "new": EXCLUDED}
    assert as_they_stand(read_decisions(path)) == before
    assert path.stat().st_mode & 0o077 == 0


def test_one_process_writes_at_a_time(tmp_path: Path):
    first = Ledger(tmp_path / "d")
    with pytest.raises(InputError, match="another confirm writes"):
        Ledger(tmp_path / "d")
    first.close()
    Ledger(tmp_path / "d").close()


GOOD = json.dumps(
    {"schema": "decision-1", "at": "2026-01-01", "study_id": "S", "stacks": {"a": {"status": "excluded"}}}
)
WHOLE = {
    **{"status": "confirmed", "sequence": "cine", "view": "sax", "along_normal": True},
    "display": {"transpose": False, "flip_rows": False, "flip_cols": False},
}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2"),
        (GOOD.replace("decision-1", "decision-9"), "schema decision-1"),
        (GOOD.replace('"stacks"', '"undo": true, "stacks"'), "either stacks or undo"),
        (GOOD.replace('{"status": "excluded"}', '{"status": "confirmed"}'), "lacks"),
        (GOOD.replace('{"status": "excluded"}', json.dumps(WHOLE | {"view": "5ch"})), "choose from cine sax"),
        (
            GOOD.replace('{"status": "excluded"}', json.dumps(WHOLE | {"ed_phase": 3, "es_phase": 3})),
            "both phase 3",
        ),
        ('{"schema": "decision-1", "at": "", "study_id": "T", "undo": true}', "taken back"),
    ],
)
def test_a_line_that_means_nothing_is_refused_by_its_number(tmp_path: Path, line: str, message: str):
    path = tmp_path / "d"
    path.write_text(f"{GOOD}\n{line}\n{GOOD}\n")
    with pytest.raises(InputError, match=r"line 2") as refused:
        read_decisions(path)
    assert message in str(refused.value)


def lge(folder: Path, number: int, component: str, grey: int) -> None:
    frames = (np.indices((6, 1, 32, 32)).sum(axis=0) * grey) % 1000
    types = ["ORIGINAL", "PRIMARY", component]
    corners = np.array([k * 8.0 * -NORMAL for k in range(6)])
    told = {"ImageType": types, "SeriesDescription": f"LGE sax {component}", **LGE}
    series(folder, frames, corners, number, ImageOrientationPatient=SHORT_AXIS, **told)


def export_of(folder: Path) -> Path:
    """A cine that was done twice, and magnitude and phase-sensitive images of one LGE."""
    healthy(folder, 10)
    healthy(folder, 11)
    lge(folder, 20, "M", 5)
    lge(folder, 21, "P", 7)
    return folder


@pytest.fixture(scope="module")
def twice(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("decided")
    export_of(root / "export")
    ingest(IngestSpec(source=root / "export", out=root / "out", key=root / "key"))
    return root


def by_series(out: Path) -> dict[int, dict]:
    return {each["series"][0]: each for each in proposals(out)}


def accepted(proposal: dict, **changes: object) -> Choice:
    entry = proposal["entry"]
    said = {"display": entry["display_transform"], "along_normal": proposal["along_normal"], **changes}
    cycle = {name: entry[name] for name in ("ed_phase", "es_phase")} if proposal["sequence"] == "cine" else {}
    return Choice(
        status="confirmed", **{"sequence": proposal["sequence"], "view": proposal["view"], **cycle, **said}
    )


def decide(root: Path, path: Path, choices: dict[int, Choice], study: str | None = None) -> Path:
    ledger = Ledger(path)
    listed = by_series(root / "out")
    (folder,) = (root / "out" / "proposals").iterdir()
    ledger.decide(study or folder.name, {listed[number]["stack"]: each for number, each in choices.items()})
    ledger.close()
    return path


def again(root: Path, out: Path, decisions: Path | None, **options: object) -> None:
    source = options.pop("source", root / "export")
    ingest(IngestSpec(source=source, out=out, key=root / "key", decisions=decisions, **options))


@pytest.mark.full
def test_a_second_export_needs_no_second_look(twice: Path, tmp_path: Path, capsys):
    listed = by_series(twice / "out")
    turned = {"transpose": True, "flip_rows": True, "flip_cols": True}
    choices = {
        10: accepted(listed[10], ed_phase=2, es_phase=6, display=turned),
        21: accepted(listed[21], along_normal=not listed[21]["along_normal"]),
    }
    path = decide(twice, tmp_path / "d", choices)
    moved = tmp_path / "moved" / "elsewhere"
    moved.parent.mkdir()
    for place in (twice / "export").rglob("IM*"):  # other names, another order, the same patients
        copy = moved / f"x{place.parent.name}" / place.name[::-1]
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(place.read_bytes())
    again(twice, tmp_path / "out", path, source=moved, threshold=1.0)
    told = capsys.readouterr().out
    assert "decisions: 2 applied, 0 refused, 0 fit nothing" in told
    assert "waiting" not in told
    assert "look at:" not in told
    (folder,) = (tmp_path / "out" / "studies").iterdir()
    volumes = {volume.volume_id: volume for volume in read_study(folder).manifest.volumes}
    assert volumes.keys() == {"cine_sax", "lge_sax"}
    cine = volumes["cine_sax"]
    assert (cine.ed_phase, cine.es_phase, cine.display_transform.model_dump()) == (2, 6, turned)
    after = by_series(tmp_path / "out")
    assert [after[number]["status"] for number in (10, 11, 20, 21)] == [
        "taken",
        "left_out",
        "left_out",
        "taken",
    ]
    assert {each["stack"] for each in after.values()} == {each["stack"] for each in listed.values()}
    for number in choices:
        assert {w["about"] for w in after[number]["witnesses"] if w["source"] == "person"} == {
            "sequence",
            "view",
        }
    assert after[21]["along_normal"] is not listed[21]["along_normal"]
    again(twice, tmp_path / "out", path, source=moved, threshold=1.0)
    told = capsys.readouterr().out
    assert "(unchanged)" in told
    assert "decisions: 2 applied" in told
    assert "DOE" not in path.read_text()
    assert CURRENT["study"] not in path.read_text()


def test_what_fits_nothing_is_counted_and_said(twice: Path, tmp_path: Path, capsys):
    path = decide(twice, tmp_path / "d", {10: EXCLUDED}, study="S0")
    again(twice, tmp_path / "out", path)
    assert "decisions: 0 applied, 0 refused, 1 fit nothing" in capsys.readouterr().out


def sheets(out: Path) -> list[bytes | None]:
    """The pictures of the four series of the only study."""
    [(study_id, stacks)] = read_imported(out).items()
    assert len(stacks) == 4
    return [sheet(out, study_id, proposal) for proposal in stacks.values()]


def test_a_picture_is_of_the_volume_that_was_proposed_or_none(twice: Path, tmp_path: Path):
    """An import may write other volumes under the same names while the page is open."""
    assert all(sheets(twice / "out"))
    shutil.copytree(twice / "out", tmp_path / "out")
    paths = sorted((tmp_path / "out").rglob("*.nii"))
    for path in paths:
        path.write_bytes(paths[0].read_bytes())
    assert sum(map(bool, sheets(tmp_path / "out"))) == 1


@pytest.mark.parametrize(
    ("is_repeat", "is_turned", "order"),
    [(False, False, "base_to_apex"), (False, True, "unknown"), (True, False, "unknown")],
)
def test_the_base_is_first_only_where_import_or_person_says_so(
    *, twice: Path, tmp_path: Path, is_repeat: bool, is_turned: bool, order: str
):
    """One stack as it was found; the same turned over; the repeat, which was never put in order."""
    listed = by_series(twice / "out")
    taken = next(n for n in (10, 11) if listed[n]["status"] == "taken")
    chosen = 21 - taken if is_repeat else taken
    made = accepted(listed[chosen], along_normal=listed[chosen]["along_normal"] != is_turned)
    again(twice, tmp_path / "out", decide(twice, tmp_path / "d", {chosen: made}))
    assert by_series(tmp_path / "out")[chosen]["entry"]["spatial_order"] == order


def test_an_excluded_stack_is_in_no_study_and_its_repeat_may_be_confirmed(
    twice: Path, tmp_path: Path, capsys
):
    first = next(n for n in (10, 11) if by_series(twice / "out")[n]["status"] == "taken")
    again(
        twice,
        tmp_path / "out",
        decide(
            twice,
            tmp_path / "d",
            {first: EXCLUDED, 21 - first: accepted(by_series(twice / "out")[21 - first])},
        ),
    )
    after = by_series(tmp_path / "out")
    assert (after[first]["status"], after[first]["reason"]) == ("left_out", "excluded")
    assert after[21 - first]["status"] == "taken"
    assert "excluded by a person" in capsys.readouterr().out


@pytest.mark.full
@pytest.mark.parametrize(
    ("wrong", "reason", "refused"),
    [
        ({10: {}, 11: {}}, "two_stacks", 2),
        ({10: {"ed_phase": 0, "es_phase": 8}}, "phase", 1),
        ({20: {"ed_phase": 0}}, "phase", 1),
        ({10: {"sequence": "lge", "ed_phase": None, "es_phase": None}}, "sequence", 1),
        ({20: {"sequence": "perfusion"}}, "sequence", 1),
    ],
)
def test_what_cannot_stand_is_refused_by_name_and_waits(
    *, twice: Path, tmp_path: Path, capsys, wrong: dict, reason: str, refused: int
):
    listed = by_series(twice / "out")
    choices = {number: accepted(listed[number], **changes) for number, changes in wrong.items()}
    again(twice, tmp_path / "out", decide(twice, tmp_path / "d", choices))
    told = capsys.readouterr().out
    assert f"0 applied, {refused} refused, 0 fit nothing" in told
    assert told.count("refused: ") == refused
    [build] = builds(tmp_path / "out")
    assert build["decisions"]["refused"] == {listed[number]["stack"]: reason for number in choices}
