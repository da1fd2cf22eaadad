"""Findings of reports by rules: a wrong answer is worse than none."""

import time
from collections import Counter

import pytest
from hospital_reports import FOLDER, read_labelled
from hypothesis import given, settings
from hypothesis import strategies as st
from report_folders import half

from cardiolens.curation.questions.extraction_truth import Extraction, settle
from cardiolens.curation.questions.numbers import ranges, read_number, sex_of
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.fixed_reports import reports
from cardiolens.phantom.roster import SEQUENCES, catalogue, study
from cardiolens.protocol.tasks.instantiate import answer, answerable_subtasks
from cardiolens.protocol.tasks.truth import findings

CATALOGUE = catalogue()
LEAST_RECALL, MOST_WRONG = 0.73, 2  # of sentences of another style
MOST_WRONG_DRAFTS, LEAST_DRAFTED = 0.04, 0.42  # of reports of hospitals
HEADS = {"cine": "CINE", "lge": "LGE", "perfusion": "PERFUSION", "t2": "T2"}


def told(text: str, sex: str | None = None) -> Extraction:
    return settle(text, extract(text, sex_of(text, sex), CATALOGUE), CATALOGUE)


def test_sentences_tell_what_their_writer_means_and_nothing_else() -> None:
    right = n_wrong = expected = 0
    for item in half("fresh"):
        truth = {subtask: tuple(keys) for subtask, keys in item["truth"].items()}
        answers = told(item["text"], item.get("sex")).answers
        agreed = sum(truth.get(subtask) == keys for subtask, keys in answers.items())
        right += agreed
        n_wrong += len(answers) - agreed
        expected += len(truth)
    assert n_wrong <= MOST_WRONG
    assert right >= LEAST_RECALL * expected


def test_no_phantom_report_gives_a_wrong_answer() -> None:
    n_right = 0
    for number in range(1, 9):
        made = study(2026, f"PH-{number:04d}")
        found = findings(made.truth)
        written = reports(found, made.seed, CATALOGUE, SEQUENCES)
        text = "\n".join(f"{HEADS[name]}:\n{one['findings']}" for name, one in written.items())
        truth = {one.id: answer(one, found) for one in answerable_subtasks(CATALOGUE, found, SEQUENCES)}
        for subtask, keys in told(text).answers.items():
            assert truth[subtask] == keys, (subtask, text)
            n_right += 1
    assert n_right > 80


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet=st.sampled_from("LV EF LGE no 35 %.\n:?-mm septum scar ü—"), max_size=120))
def test_every_finding_is_quoted_from_its_place(text: str) -> None:
    for one in extract(text, None, CATALOGUE):
        assert text[one.start : one.end] == one.quote


@pytest.mark.parametrize(
    ("text", "subtask"),
    [
        ("No LGE in the septum.", "L01"),
        ("No subendocardial late enhancement.", "L01"),
        ("No akinesia.", "C06"),
        ("Basal segments contract normally.", "C06"),
        ("No mitral regurgitation.", "C17"),
        ("Left ventricle dilated.", "C01"),
        ("Normal LV systolic function. LVEF 25 %.", "C10"),
        ("Impression: no scar. Transmural scar of the inferior wall.", "L01"),
        ("Scar in the basal to apical inferior wall.", "L02"),
        ("History of LVEF 25 %.", "C10"),
        ("LVEF 53 %.", "C10"),
        ("Possible scar of the septum.", "L01"),
        ("Hypertrophic or dilated cardiomyopathy.", "D02"),
        ("Left atrium enlarged.", "C16"),
    ],
)
def test_what_leaves_a_doubt_has_no_answer(text: str, subtask: str) -> None:
    assert subtask not in told(text).answers


@given(
    st.sampled_from(sorted(ranges()["quantities"])),
    st.floats(0, 500),
    st.sampled_from([None, "male", "female"]),
)
def test_a_number_tells_an_option_only_within_its_band_and_without_a_sex_what_both_tell(
    quantity: str, number: float, sex: str | None
) -> None:
    bands = ranges()["quantities"][quantity]["bands"]
    inside = [
        {value for low, high, value in bands[one] if low <= number <= high}
        for one in ([sex] if sex else ["female", "male"])
    ]
    common = set.intersection(*inside)
    value = read_number(quantity, number, number, sex).value
    assert {value} == common if common else value is None


AMENDED = "LV normal size, EF 60 %. No LGE. No oedema. No pericardial effusion.\n\n"
CINE = {"C01", "C10", "C19"}
ALL = {*CINE, "L01", "T01"}
NOTES = {  # what each leaves
    "Addendum: LVEF is 50 %, mildly reduced.": ALL - CINE,
    "Addendum: The right atrium is enlarged.": ALL - CINE,
    "Erratum: Scar of the lateral wall.": ALL - {"L01"},
    "Addendum: On another look.\nThere is no oedema.": ALL - {"T01"},
    "Addendum\n\nLV mildly dilated.": ALL - CINE,
    "Addendum: Wrong wall.": set(),
    "Addendum: The report belongs to another patient.": set(),
    "Addendum: The first sentence should read severely dilated.": ALL - CINE,
    "Addendum: discussed with Dr X. No change to the report.": ALL,
    "Addendum: discussed with Dr X, but the LV is dilated.": ALL - CINE,
    "Scar, scratch that, no scar of the septum.": ALL - {"L01"},
    "Correction: of the septum.": set(),
}


@pytest.mark.parametrize("note", NOTES)
def test_an_addendum_takes_the_sequences_that_it_names_or_all(note: str) -> None:
    assert set(told(AMENDED).answers) == ALL
    assert set(told(AMENDED + note).answers) == NOTES[note]


NORMAL = "LV normal size. RV normal size. No LGE.\n"
DCM = (("C",), ("B",))
STATED = {
    "Conclusion: Findings are consistent with dilated cardiomyopathy.": DCM,
    "Conclusion: Picture of a dilative cardiomyopathy.": DCM,
    "Conclusion dilated cardiomyopathy.": DCM,
    "Remark: DCM": DCM,
    "Conclusion: Findings are not consistent with dilated cardiomyopathy.": None,
    "Conclusion: Findings are suggestive of dilated cardiomyopathy.": None,
    "Conclusion: Findings would be consistent with dilated cardiomyopathy.": None,
    "Conclusion: Dilated cardiomyopathy. Small vessels may be diseased.": DCM,
    "Conclusion: Consistent with dilated cardiomyopathy. Small vessels may be diseased.": None,
    "Findings are consistent with dilated cardiomyopathy.": DCM,
    "Findings are consistent with dilated cardiomyopathy. No oedema.": None,
    "Remark: DCM protocol": None,
}


def diagnosed(text: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    answers = told(text).answers
    return (answers["D01"], answers["D02"]) if "D01" in answers else None


@pytest.mark.parametrize("conclusion", STATED)
def test_a_diagnosis_stands_where_nothing_competes_with_it(conclusion: str) -> None:
    assert diagnosed(NORMAL + conclusion) == STATED[conclusion]


def test_a_remark_above_the_findings_concludes_nothing() -> None:
    assert diagnosed("Remark: DCM\n" + NORMAL) is None


@pytest.mark.parametrize("name", ["ninth_closed", "tenth", "tenth_closed"])
def test_few_drafts_of_hospital_reports_are_wrong_and_many_are_made(name: str) -> None:
    """Of reports that the rules were repaired on; `bench/hospitals.py` measures others."""
    counts: Counter[str] = Counter()
    for report in read_labelled(FOLDER / f"{name}_reports.txt"):
        answers = told(report.text).answers
        counts += report.truth.counts({subtask: "".join(keys) for subtask, keys in answers.items()})
    assert counts["wrong"] <= MOST_WRONG_DRAFTS * counts["drafts"]
    assert counts["hits"] >= LEAST_DRAFTED * counts["told"]


def test_a_long_report_of_one_line_is_read_quickly() -> None:
    started = time.monotonic()
    told("No LGE, " * 1000)
    assert time.monotonic() - started < 20
