"""Free-text reports: what the truth says of a text stands in it, and follows from the study alone."""

import csv
import importlib.util
import json
from functools import cache
from pathlib import Path

import pytest

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.archetypes import canonical_values
from cardiolens.phantom.draws import Draws
from cardiolens.phantom.free_text.free_report import free_report
from cardiolens.phantom.free_text.place_phrases import place
from cardiolens.phantom.free_text.report_writer import make_reports
from cardiolens.phantom.free_text.templates import STYLES, groups
from cardiolens.phantom.roster import catalogue, study
from cardiolens.protocol.tasks.instantiate import answer
from cardiolens.protocol.tasks.segments import LEVELS, SEGMENTS, WALLS, touched
from cardiolens.protocol.tasks.truth import findings

JOB = Path(__file__).parents[3] / "jobs" / "make_phantom.py"
IDS = (*canonical_values(), *(f"PH-{number:04d}" for number in range(1, 81)))


@cache
def reports():
    return {study_id: free_report(study(2026, study_id), catalogue()) for study_id in IDS}


def certain(truth):
    return [one for one in truth["findings"] if one["certainty"] == "certain"]


@pytest.mark.parametrize("study_id", IDS)
def test_what_is_told_for_certain_is_the_truth_of_the_study(study_id):
    found = findings(study(2026, study_id).truth)
    truth = reports()[study_id].truth
    for one in certain(truth):
        subtask = catalogue()[one["subtask"]]
        keys = answer(subtask, found)
        assert one["answer"] == [option.text for option in subtask.options if option.key in keys]
    told = {one["subtask"] for one in truth["findings"] if one["certainty"] != "historical"}
    assert not told & set(truth["left_out"])


def test_every_sentence_lies_where_the_truth_says_and_every_identity_stands_in_the_text():
    for one in reports().values():
        ends = 0
        for sentence in one.truth["sentences"]:
            assert ends <= sentence["start"] < sentence["end"] <= len(one.text)
            text, ends = one.text[sentence["start"] : sentence["end"]], sentence["end"]
            assert text == text.strip()
            assert not any(name in text for name in one.truth["identities"] if sentence["kind"] != "prior")
        assert one.truth["identities"]
        assert all(name in one.text for name in one.truth["identities"])
        assert "{" not in one.text


def test_a_finding_is_told_in_the_sections_of_findings_and_history_elsewhere():
    for one in reports().values():
        section_of = {sentence["id"]: sentence["section"] for sentence in one.truth["sentences"]}
        for told in one.truth["findings"]:
            sections = {section_of[number] for number in told["sentences"]}
            past = told["certainty"] == "historical"
            assert sections <= ({"comparison"} if past else {"findings", "impression"})


def test_a_contradiction_is_marked_and_differs_from_the_truth():
    contrary = [(one, said) for one in reports().values() for said in one.truth["contradictions"]]
    assert 3 <= len(contrary) <= 25
    assert len({said["kind"] for _, said in contrary}) == 3
    for one, said in contrary:
        (told,) = [fact for fact in certain(one.truth) if fact["finding"] == said["finding"]]
        assert told["contradicted"]
        assert said["says"] != told["answer"]
        assert said["sentence"] not in told["sentences"]
    marked = [fact for one in reports().values() for fact in certain(one.truth) if fact["contradicted"]]
    assert len(marked) == len(contrary)


def test_reports_vary_in_style_certainty_and_in_how_they_tell():
    truths = [one.truth for one in reports().values()]
    facts = [fact for truth in truths for fact in truth["findings"]]
    assert {truth["style"] for truth in truths} == set(STYLES)
    assert {fact["certainty"] for fact in facts} == {"certain", "uncertain", "historical"}
    assert {fact["told"] for fact in facts} == {"words", "number", "implied"}
    asked = {one.id for one in catalogue().subtasks.values() if one.options}
    assert {fact["subtask"] for fact in facts} == asked
    assert len({one.text for one in reports().values()}) == len(IDS)


@pytest.mark.parametrize("style", STYLES)
def test_every_group_has_sentences_for_each_of_its_values(style):
    """In each style, for every value that a phantom can have; checked by asking for all."""
    drivers = {one.finding: one for one in catalogue().subtasks.values() if one.options}
    for name, group in groups().items():
        if name == "diagnosis":
            values = {"normal", "icm", "hcm", "dcm", "inflammatory", "restrictive", "acm"}
        else:
            values = {value for option in drivers[group.by].options for value in option.values}
        assert all(len(group.sentences(style, value)) >= 1 for value in values), name


@pytest.mark.parametrize("seed", range(60))
def test_a_place_names_levels_and_walls_of_its_segments_alone(seed):
    draw = Draws(f"{seed}", 0)
    segments = sorted({1 + int(draw.unit() * 17) for _ in range(1 + int(draw.unit() * 6))})
    text = place(segments, "headed", draw).text
    if text.startswith("AHA"):
        assert [int(word.strip(",")) for word in text.split() if word.strip(",").isdigit()] == segments
        return
    walls = touched(segments, WALLS)
    septal, lateral = "sept" in text, "lateral" in text
    assert (septal, lateral) == ("septal" in walls, "lateral" in walls)
    for level in LEVELS:
        word = "apical cap" if level == "apex" else level
        assert (word in text.replace("apical cap", "" if level == "apical" else "apical cap")) == (
            level in touched(segments, LEVELS)
        )
    assert set(segments) <= set(SEGMENTS)


def test_files_follow_from_the_seed_and_link_each_text_to_one_study(tmp_path):
    spec = PhantomSpec(n_sampled=6)
    for name in ("one", "two"):
        make_reports(spec, tmp_path / name)
    written = [
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    ]
    assert written[0] == written[1]
    rows = list(csv.DictReader((tmp_path / "one" / "reports.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["study_id"] for row in rows] == [f"PH-{number:04d}" for number in range(1, 7)]
    texts = {path.stem for path in (tmp_path / "one" / "reports").iterdir()}
    assert texts == {row["accession"] for row in rows}
    lines = (tmp_path / "one" / "report_truth.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["accession"] for line in lines] == [row["accession"] for row in rows]


def job():
    spec = importlib.util.spec_from_file_location("make_phantom_job", JOB)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def test_the_job_makes_reports_alone_or_beside_the_studies(tmp_path, capsys):
    words = ["dataset=phantom_ci", "dataset.phantom.n_sampled=1"]
    assert job()([*words, "format=text", f"out={tmp_path / 'text'}"]) == 0, capsys.readouterr().err
    assert job()([*words, "reports=free", f"out={tmp_path / 'both'}"]) == 0, capsys.readouterr().err
    alone = {path.name: path.read_bytes() for path in (tmp_path / "text").rglob("*.*")}
    assert len(alone) == 3
    beside = {path.name: path.read_bytes() for path in (tmp_path / "both").rglob("*.*")}
    assert alone.items() <= beside.items()
    assert "study.json" in beside


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reports=some"], "reports: Input should be 'free', got 'some'"),
        (["reports=free", "format=dicom", "vendor=ge"], "make them with format=text"),
        (["format=text", "masks=true"], "masks=: only of images"),
        (["format=text", "vendor=ge"], "vendor=: only for DICOM"),
    ],
)
def test_the_job_names_options_that_do_not_fit(words, message, tmp_path, capsys):
    assert job()(["dataset=phantom_ci", f"out={tmp_path / 'cohort'}", *words]) == 2
    assert message in capsys.readouterr().err
