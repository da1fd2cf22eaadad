"""No release before a person confirmed what may name somebody; old ids are refused in any case."""

import gzip
import json
import re
import stat
import struct
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.release import identity_report
from cardiolens.curation.release.identities import fold
from cardiolens.curation.release.identity_report import find_ids
from tests.unit.curation.release.test_release import SECRET, every_byte, line, words, write_lines
from tests.unit.given_words import release

__all__ = ["words"]
SUBTASK = """
subtasks:
  - {id: X01, tier: 1, sequence: lge, field: scar, question: "Is there scar?", answer_type: single,
     options: [{key: A, text: "Yes"}, {key: B, text: "No"}], route: {lge: 8}, provenance: "ours"}
"""


def report_of(root: Path) -> str:
    return (root / "out-identities.txt").read_text(encoding="utf-8")


def refusal(words: list[str]) -> str:
    with pytest.raises(InputError) as refused:
        release(words)
    return str(refused.value)


def digest(said: str) -> str:
    [found] = re.findall(r"add confirmed=([0-9a-f]{16})", said)
    return str(found)


def whole(number: int, question: str = "Is there scar?", **more: Any) -> dict[str, Any]:
    """A question in its own words."""
    study = f"{SECRET}-{number}"
    record = {
        "schema": "qa-1",
        "qa_id": f"{study}:L01",
        "study_id": study,
        "patient_id": f"{SECRET}-{number % 4}",
    }
    record |= {"tier": 1, "subtask": "L01", "sequence": "lge", "question": question, "answer_type": "single"}
    options = [{"key": "A", "text": "It is absent"}, {"key": "B", "text": "It is present"}]
    record |= {"options": options, "answer": ["A"], "origin": "report", "protocol": "openprotocol-1"}
    return record | {"verification": {"status": "verified", "stage": 8}} | more


def edit(root: Path, number: int, **entries: Any) -> None:
    path = root / "studies" / f"{SECRET}-{number}" / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def test_a_person_confirms_what_was_found_and_more_asks_again(words: list[str], tmp_path: Path) -> None:
    write_lines(tmp_path, [whole(1, "Does Dr. Huber see scar?"), line(2)])
    said = refusal(words)
    assert "q.jsonl, line 1, question (name)" in said
    assert "Huber" not in said
    assert "[[Dr. Huber see scar]]" in report_of(tmp_path)
    assert stat.S_IMODE((tmp_path / "out-identities.txt").stat().st_mode) == 0o600
    assert not (tmp_path / "out").exists()
    confirmed = f"confirmed={digest(said)}"
    edit(tmp_path, 2, site="Ward 23.05.2019")
    again = refusal([*words, confirmed])
    assert f"{confirmed} is of other findings" in again
    assert "MUSTERMANN-2/study.json, site" in report_of(tmp_path)
    assert release([*words, f"confirmed={digest(again)}"]) == 0
    assert b"Huber" in every_byte(tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*identities*"))


@pytest.mark.parametrize("form", ["MUSTERMANN-1", "Mustermann_1."])
def test_an_old_id_is_refused_and_cannot_be_confirmed(
    words: list[str], tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path, [whole(1, f"Is {form} scarred?"), line(2)])
    said = refusal(words)
    assert "line 1, question: holds the old id" in said
    assert "confirmed=" not in said + report_of(tmp_path)
    assert form.lower() not in said.lower()
    monkeypatch.setattr(identity_report, "digest_of", lambda _: "0123456789abcdef")  # as if it was guessed
    with pytest.raises(InputError, match="holds the old id"):
        release([*words, "confirmed=0123456789abcdef"])


def test_ids_are_found_whole() -> None:
    ids = frozenset({"acdc001", "müller7"})
    for text, found in {
        "ACDC-001": 1,
        "ACDC-0012": 0,
        "XACDC 001": 0,
        "mu\u0308ller 7": 1,
        "acdc until 001": 0,
    }.items():
        assert len(list(find_ids(fold(text), ids))) == found, text


@pytest.mark.parametrize(
    "entry",
    [
        {"readers": 19660523},
        {"kappa_batch": "Huber"},
        {"kappa": 19660523},
    ],
)
def test_a_verification_of_another_form_is_refused(
    words: list[str], tmp_path: Path, entry: dict[str, Any]
) -> None:
    verified = {"status": "verified", "stage": 8} | entry
    write_lines(tmp_path, [line(1), line(2, verification=verified)])
    [name] = entry
    said = refusal([*words, "allow_unverified=true"])
    assert f"q.jsonl line 2: verification.{name} is" in said
    assert "Huber" not in said
    assert "19660523" not in said


# An identity for each place that a text or number of somebody could take into a release.
IN_STUDY = {"site": "Dr. Aalto", "vendor": "MRN 700001", "species": "Frau Bauer"}
IN_QUESTION = {
    "question": "Scar of Mr Carlsson on 1966-05-23, as Mme Dubois said?",
    "exclusive": ["Prof. Eriksen"],
    "parent": "Herr Fischer",
    "evidence": ["Frau Gruber, 700002"],
}
PLANTED = """
Aalto 700001 Bauer Carlsson 1966-05-23 Dubois Eriksen Fischer Gruber 700002 Hansen Ivanov Jansen 700003 Kaya
700004 Lopez Moreau 700005 Novak 700006
"""
HEADER = {4: "Olsen", 14: "Petrov", 148: "Quandt 700007", 188: "Schmidt.dcm", 228: "Rossi", 328: "Tanaka"}
NUMBERS = {56: 700008.0, 60: 700009.0, 124: 700010.0, 136: 700011.0, 140: 700012, 32: 700013}


def test_of_forty_identities_in_every_channel_none_is_in_any_byte(words: list[str], tmp_path: Path) -> None:
    """What the scan finds is taken out one by one, as the report asks; the release has none of them."""
    edit(tmp_path, 1, **IN_STUDY, report_id="Dr. Hansen", cohort=["ivanov"], patient_id="Jansen 700003")
    (tmp_path / "studies" / f"{SECRET}-1").rename(tmp_path / "studies" / "Kaya_700004")
    planted = {"by": ["Dr. Lopez"], "note": "Moreau 700005", "at": "1966-05-23"}
    verification = {"status": "verified", "stage": 8, **planted}
    options = [{"key": "A", "text": "As Dr. Novak said"}, {"key": "B", "text": "Present 700006"}]
    write_lines(tmp_path, [whole(1, options=options, verification=verification, **IN_QUESTION), line(2)])
    image = tmp_path / "studies" / "Kaya_700004" / f"{SECRET}.nii.gz"
    content = bytearray(gzip.decompress(image.read_bytes()))
    for at, text in HEADER.items():
        content[at : at + len(text)] = text.encode()
    for at, number in NUMBERS.items():
        content[at : at + 4] = struct.pack("<f" if isinstance(number, float) else "<i", number)
    image.write_bytes(gzip.compress(bytes(content) + b"Ulrich 700014"))

    refusal(words)
    report = report_of(tmp_path)
    visible = ["Aalto", "700001", "Bauer", "Carlsson", "1966-05-23", "Dubois", "Eriksen", "Novak", "700006"]
    assert [one for one in visible if one not in report] == []
    for entry in IN_STUDY:
        path = tmp_path / "studies" / "Kaya_700004" / "study.json"
        told = {name: value for name, value in json.loads(path.read_text()).items() if name != entry}
        path.write_text(json.dumps(told))
    clean = whole(1, parent="Herr Fischer", evidence=["Frau Gruber, 700002"], verification=verification)
    write_lines(tmp_path, [clean, line(2)])
    assert release(words) == 0
    found = every_byte(tmp_path / "out")
    names = [*PLANTED.split(), *HEADER.values(), "Ulrich", "700014", SECRET]
    numbers = [
        struct.pack("<f" if isinstance(number, float) else "<i", number) for number in NUMBERS.values()
    ]
    assert len(names) + len(numbers) >= 30
    assert [name for name in names if name.lower().encode() in found.lower()] == []
    assert [number for number in numbers if number in found] == []


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("licence", "by Dr. Wagner"),
        ("cohorts", "dev-700015"),
    ],
)
def test_words_of_the_command_are_read_as_well(words: list[str], word: str, value: str) -> None:
    given = [one for one in words if not one.startswith(f"{word}=")]
    assert f"the command, {word}=" in refusal([*given, f"{word}={value}"])


def test_a_protocol_of_ones_own_is_read_with_its_comments(words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "protocol"
    folder.mkdir()
    (folder / "protocol.yaml").write_text("protocol: ours-1\n")
    (folder / "tasks.yaml").write_text(f"# asked by Dr. Yilmaz\n{SUBTASK}")
    (folder / "Dr. Zhou.yaml").write_text("subtasks: []\n")
    write_lines(tmp_path, [line(1, subtask="X01")])
    refusal([*words, f"protocol={folder}"])
    assert "protocol/tasks.yaml, text" in report_of(tmp_path)
    assert "protocol, names of files" in report_of(tmp_path)
    (folder / "letter.doc").write_bytes(b"\xd0\xcf\x11\xe0")
    assert "letter.doc is no text" in refusal([*words, f"protocol={folder}"])
    (folder / "letter.doc").unlink()
    (folder / "letter.doc").symlink_to(tmp_path / "studies")
    assert "letter.doc is no text" in refusal([*words, f"protocol={folder}"])
