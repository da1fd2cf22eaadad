"""Diagnoses that findings are consistent with: stated by a conclusion, where nothing competes with them."""

import pytest

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.roster import catalogue

CATALOGUE = catalogue()
REPORT = "LV normal size. RV normal size. No LGE.\n"
DCM = (("C",), ("B",))
STATED = {
    "Conclusion: Findings are consistent with dilated cardiomyopathy.": DCM,
    "Conclusion: Findings in keeping with dilated cardiomyopathy.": DCM,
    "Conclusion: Picture of a dilative cardiomyopathy.": DCM,
    "Conclusion dilated cardiomyopathy.": DCM,
    "Remark: DCM": DCM,
    "-> DCM": DCM,
    "Conclusion: Findings are not consistent with dilated cardiomyopathy.": None,
    "Conclusion: Findings are suggestive of dilated cardiomyopathy.": None,
    "Conclusion: Findings would be consistent with dilated cardiomyopathy.": None,
    "Conclusion: Dilated cardiomyopathy. Small vessels may be diseased.": DCM,
    "Conclusion: Consistent with dilated cardiomyopathy. Small vessels may be diseased.": None,
    "Conclusion: Consistent with dilated cardiomyopathy. Hypertension or exercise.": None,
    "Findings are consistent with dilated cardiomyopathy.": DCM,
    "Findings are consistent with dilated cardiomyopathy. No oedema.": None,
    "Remark: DCM protocol": None,
}


def diagnosed(text: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    answers = settle(text, extract(text, None, CATALOGUE), CATALOGUE).answers
    return (answers["D01"], answers["D02"]) if "D01" in answers else None


@pytest.mark.parametrize("conclusion", STATED)
def test_a_diagnosis_stands_where_nothing_competes_with_it(conclusion: str) -> None:
    assert diagnosed(REPORT + conclusion) == STATED[conclusion]


def test_a_remark_above_the_findings_concludes_nothing() -> None:
    assert diagnosed("Remark: DCM\n" + REPORT) is None
