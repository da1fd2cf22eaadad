"""The whole way by rules: linked, resumed, counted, and silent about patients."""

import json
import logging
import shutil
from pathlib import Path

import pytest
from report_folders import lines, write_reports, write_study

from cardiolens.base.errors import InputError
from cardiolens.config.command_words import read_words
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.curation.questions.draft_questions import counts_page, questions
from cardiolens.curation.questions.glossary import with_glossary
from cardiolens.curation.questions.report_files import read_links
from cardiolens.curation.questions.stage_files import Stages, read_lines
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.phantom.roster import catalogue

TEXTS = {
    "S1": "Name: Erika Mustermann, 12.03.1961\nFindings: LVEF 62 %. No pericardial effusion.",
    "S2": "FINDINGS\nLV severely dilated, LVEF 20 %.\nIMPRESSION\nDilated cardiomyopathy.",
    "S3": "Findings: Severe hypokinesia? Possible scar.",
}
STAGES = ("1-sections", "2-findings.rules", "3-truth", "4-checks", "5-drafts", "6-automatic")


def test_reports_become_lines_of_questions_that_name_their_evidence(tmp_path: Path) -> None:
    assert questions(read_words(QuestionsSpec, write_reports(tmp_path, TEXTS))) == 0
    out = tmp_path / "out"
    made = {(one["study"], one["subtask"]): one for one in lines(out / "questions.jsonl")}
    answers = {place: one["answer"] for place, one in made.items()}
    assert answers == {
        ("S1", "C10"): ["A"],
        ("S1", "C19"): ["A"],
        ("S2", "C01"): ["C"],
        ("S2", "C10"): ["D"],
        ("S2", "D01"): ["C"],
        ("S2", "D02"): ["B"],
    }
    quotes = {
        (one["study_id"], item["id"]): item["quote"]
        for one in lines(out / "2-findings.rules.jsonl")
        for item in one["items"]
    }
    for (study_id, _), one in made.items():
        assert set(one) == {"study", "subtask", "answer", "evidence", "origin", "verification"}
        assert all(quotes[study_id, evidence] in TEXTS[study_id] for evidence in one["evidence"])
        assert one["verification"]["queue"] == "full"
    assert {one["reason"] for one in lines(out / "rejects.jsonl")} >= {"uncertain"}
    for name in STAGES:
        for record in lines(out / f"{name}.jsonl"):
            assert {"schema", "stage", "study_id", "tool_version", "input_sha256"} <= record.keys()


def test_a_glossary_opens_sections_and_names_findings(tmp_path: Path) -> None:
    texts = {
        "S1": "Befund\nKein Speck. LVEF 60 %.",
        "S2": "Vorgeschichte:\nLVEF 20 %.\nBefund: No speck.",
    }
    words = tmp_path / "words.yaml"
    words.write_text(
        "headings: {Vorgeschichte: History, Befund: Findings}\n"
        "synonyms: {speck: late gadolinium enhancement, kein: 'no'}\n"
    )
    assert questions(read_words(QuestionsSpec, [*write_reports(tmp_path, texts), f"words={words}"])) == 0
    made = lines(tmp_path / "out" / "questions.jsonl")
    answers = {(line["study"], line["subtask"]): line["answer"] for line in made}
    assert answers == {("S1", "L01"): ["A"], ("S1", "C10"): ["A"], ("S2", "L01"): ["A"]}
    history, findings = lines(tmp_path / "out" / "1-sections.jsonl")[1]["sections"]
    assert (history["name"], findings["name"]) == ("silent", "any")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("headings: {Befund: Befund}", "heading 'Befund' is to mean 'Befund'"),
        ("synonyms: {speck: Speck}", "which no lexicon has"),
        ("synonyms: {scar: late gadolinium enhancement}", "has a meaning already"),
        ("sentences: {}", "legal are synonyms and headings"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_refused(tmp_path: Path, entry: str, expected: str) -> None:
    (tmp_path / "words.yaml").write_text(entry)
    with pytest.raises(InputError, match=expected):
        with_glossary(catalogue(), tmp_path / "words.yaml")


def test_a_stage_makes_only_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = read_words(QuestionsSpec, write_reports(tmp_path, TEXTS))
    questions(spec)

    def content() -> list[str]:
        return [(tmp_path / "out" / f"{name}.jsonl").read_text() for name in STAGES]

    before = content()
    capsys.readouterr()
    questions(spec)
    assert capsys.readouterr().out.count("3 reports, 0 made now") == len(STAGES)
    assert before == content()
    (tmp_path / "reports" / "S3.txt").write_text("Findings: LVEF 60 %.")
    torn = tmp_path / "out" / "3-truth.jsonl"
    torn.write_text(torn.read_text()[:-40])
    questions(spec)
    printed = capsys.readouterr().out
    assert "2-findings.rules: 3 reports, 1 made now" in printed
    assert "3-truth: 3 reports, 3 made now" in printed, "a torn file is made again whole"


def test_nothing_of_a_patient_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    words = write_reports(tmp_path, TEXTS)
    (tmp_path / "reports" / "ACC-4711 Mustermann.txt").write_text(TEXTS["S1"])
    (tmp_path / "reports" / "ACC-4712.txt").write_bytes(b"\xff\xfe Mustermann")
    (tmp_path / "reports" / "ACC-4713.txt").write_text(" \n")
    with caplog.at_level(logging.DEBUG):
        questions(read_words(QuestionsSpec, words))
    shown = capsys.readouterr().out + caplog.text
    for name in ("counts.html", "rejects.jsonl", "questions.jsonl"):
        shown += (tmp_path / "out" / name).read_text()
    for secret in ("Mustermann", "Erika", "1961", "ACC-47"):
        assert secret not in shown
    reasons = [one["reason"] for one in lines(tmp_path / "out" / "rejects.jsonl") if one["stage"] == 1]
    assert sorted(reasons) == ["empty", "no_study", "unreadable"]


def test_links_that_name_patients_are_read_only_if_they_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "links.jsonl"
    path.write_text(json.dumps({"study_id": "S1", "patient": "Mustermann", "accession": "ACC-1"}) + "\n")
    path.chmod(0o644)
    with pytest.raises(InputError, match=r"links=\S+: others may read it \(mode 644\)") as refused:
        read_links(path)
    assert "Mustermann" not in str(refused.value)
    path.chmod(0o600)
    assert read_links(path) == {"ACC-1": "S1"}
    path.write_text("accession,study_id\nACC-1,S1\n")
    path.chmod(0o644)
    assert read_links(path) == {"ACC-1": "S1"}, "a table that names no patient"


def test_a_table_is_linked_by_accession_number_and_one_study_has_one_report(tmp_path: Path) -> None:
    for name in ("S1", "S2", "S3", "S4"):
        write_study(tmp_path, name, **({"report_id": "ACC-3"} if name == "S3" else {}))
    (tmp_path / "links.csv").write_text("accession,study_id\nACC-1,S1\nACC-2,S2\nACC-9,S1\nACC-9,S2\n")
    told = ((1, 60), (2, 20), (2, 60), (3, 45), (9, 60))
    rows = [f"ACC-{number},LVEF {share} %.,\n" for number, share in told]
    text = "".join(["accession,text,study_id\n", *rows, "ACC-1,LVEF 20 %.,S4\n"])
    (tmp_path / "reports.csv").write_text(text)
    words = [f"reports={tmp_path}/reports.csv", f"studies={tmp_path}/studies", f"out={tmp_path}/out"]
    questions(read_words(QuestionsSpec, [*words, f"links={tmp_path}/links.csv"]))
    made = {one["study"]: one["answer"] for one in lines(tmp_path / "out" / "questions.jsonl")}
    assert made == {"S1": ["A"], "S3": ["B"]}
    lost = [(one["reason"], one["number"]) for one in lines(tmp_path / "out" / "rejects.jsonl")]
    assert sorted(lost) == [("no_study", 5), ("no_study", 6), ("several_reports", 2), ("several_reports", 3)]


def test_a_study_whose_name_tells_the_answer_has_no_such_question(tmp_path: Path) -> None:
    questions(read_words(QuestionsSpec, write_reports(tmp_path, {"case-DCM-1": TEXTS["S2"]})))
    made = {one["subtask"] for one in lines(tmp_path / "out" / "questions.jsonl")}
    assert "D01" in made
    assert "D02" not in made
    assert {one["reason"] for one in lines(tmp_path / "out" / "rejects.jsonl")} == {"leaks"}


def test_the_page_shows_what_it_is_given_as_text() -> None:
    shown = counts_page({"<b>": 1}, {"<b>": 1}, [(1, "<i>", 2, "&")], [("C01", "<script>", 1, 2, 3)])
    assert "<b>" not in shown
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_what_cannot_be_read_is_said_with_the_remedy(tmp_path: Path) -> None:
    words = write_reports(tmp_path, {"S1": "x"})
    for name in ("S1", "S2"):
        shutil.copytree(tmp_path / "studies" / "S1", tmp_path / "twice" / name)
    for changed, expected in (
        (f"reports={tmp_path}/none", "no such folder"),
        (f"studies={tmp_path}/none", "holds no study"),
        (f"studies={tmp_path}/twice", "study_id S1 stands twice; rename one study"),
        (f"out={tmp_path}/reports/out", "lie within each other"),
        ("colour=red", "unknown key .colour.; expected only reports"),
    ):
        name = changed.partition("=")[0]
        others = [word for word in words if not word.startswith(f"{name}=")]
        with pytest.raises(InputError, match=expected):
            questions(read_words(QuestionsSpec, [*others, changed]))


def test_records_of_another_protocol_are_made_anew(tmp_path: Path) -> None:
    given = [{"study_id": "S1", "report_id": "R-1", "text": "x"}]
    first, second = Stages(tmp_path, "one"), Stages(tmp_path, "two")
    for stages in (first, second, Stages(tmp_path, catalogue().sha256)):
        stages.run("1-sections", "sections-1", given, lambda one: {"n": len(one["text"])})
        assert stages.made == {"1-sections": 1}
    assert [one["n"] for one in read_lines(tmp_path / "1-sections.jsonl")] == [1]


def test_a_study_under_two_ids_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Drafts of studies that show the same pictures name each other."""
    make_cohort(PhantomSpec(n_sampled=2), tmp_path / "phantoms")
    first, second, *_ = sorted((tmp_path / "phantoms" / "studies").iterdir())
    for folder, name in ((first, first.name), (second, second.name), (first, "AGAIN")):
        copy = shutil.copytree(folder, tmp_path / "studies" / name)
        manifest = json.loads((copy / "study.json").read_text())
        (copy / "study.json").write_text(json.dumps(manifest | {"study_id": name, "patient_id": name}))
    write_study(tmp_path, "UNREAD")
    names = (first.name, second.name, "AGAIN", "UNREAD")
    (tmp_path / "reports").mkdir()
    for name in names:
        (tmp_path / "reports" / f"{name}.txt").write_text(f"LVEF 60 %. Report {names.index(name)}.")
    words = [f"reports={tmp_path}/reports", f"studies={tmp_path}/studies", f"out={tmp_path}/out"]
    assert questions(read_words(QuestionsSpec, words)) == 0
    checked = {one["study_id"]: one["checked"]["C10"] for one in lines(tmp_path / "out/6-automatic.jsonl")}
    duplicates = {name: state["duplicate"] for name, state in checked.items()}
    assert duplicates == {first.name: ["AGAIN"], second.name: [], "AGAIN": [first.name], "UNREAD": None}
    output = capsys.readouterr().out
    assert "2 studies show the pictures of another one" in output
    assert "1 studies have images that cannot be read" in output
    questions(read_words(QuestionsSpec, words))
    assert "6-frames: 4 studies, 0 made now" in capsys.readouterr().out
