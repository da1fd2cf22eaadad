"""Findings of reports by rules: a wrong answer is worse than none."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_folders import half

from cardiolens.curation.questions.draft_reasons import MEANINGS, Reason
from cardiolens.curation.questions.extraction_truth import Extraction, settle
from cardiolens.curation.questions.numbers import ranges, read_number, sex_of
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.fixed_reports import reports
from cardiolens.phantom.roster import SEQUENCES, catalogue, study
from cardiolens.protocol.tasks.instantiate import answer, answerable_subtasks
from cardiolens.protocol.tasks.truth import findings

CATALOGUE = catalogue()
LEAST_RECALL, MOST_WRONG = 0.73, 2  # of sentences of another style
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


def test_bands_name_options_and_never_touch() -> None:
    for entry in ranges()["quantities"].values():
        texts = {option.text for option in CATALOGUE[entry["subtask"]].options}
        for bands in entry["bands"].values():
            assert {value for _, _, value in bands} <= texts
            ordered = sorted(bands)
            assert all(one[1] < other[0] for one, other in pairwise(ordered))


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)
