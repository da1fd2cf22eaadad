from pathlib import Path

import pytest
import yaml

from cardiolens.phantom import fixed_reports as reports
from cardiolens.phantom.parameters import canonical_values
from cardiolens.phantom.roster import SEQUENCES, catalogue, study
from cardiolens.protocol.tasks.truth import findings
from cardiolens.report_text.extract import extract

SENTENCES = yaml.safe_load((Path(__file__).parent / "report_sentences.yaml").read_text())


def entities(fields):
    pairs = (
        (name, value)
        for name, values in fields.items()
        for value in (values if isinstance(values, list) else [values])
    )
    return frozenset(pairs)


@pytest.mark.parametrize("case", SENTENCES, ids=lambda case: case["text"][:50])
def test_hand_written_sentence(case):
    assert extract(case["text"], case["sequence"], catalogue()) == entities(case["entities"])


def test_there_are_sixty_sentences_and_each_names_real_options():
    assert len(SENTENCES) >= 60
    legal = {
        (subtask.sequence, subtask.field, option.text)
        for subtask in catalogue().subtasks.values()
        for option in subtask.options
    }
    for case in SENTENCES:
        assert {(case["sequence"], *pair) for pair in entities(case["entities"])} <= legal


def test_the_worked_example_of_the_protocol():
    """Protocol 3.3: TP 3, FP 1, FN 2."""
    gold = extract("Subepicardial late enhancement of the basal and mid lateral wall.", "lge", catalogue())
    found = extract("Subepicardial enhancement of the mid septum.", "lge", catalogue())
    assert (len(gold & found), len(found - gold), len(gold - found)) == (3, 1, 2)


@pytest.mark.parametrize("wording", range(reports.WORDINGS))
@pytest.mark.parametrize("name", canonical_values())
def test_every_wording_of_a_canonical_report_says_what_its_fields_say(name, wording):
    found = findings(study(2026, name).truth)
    for sequence, report in reports.reports(found, "seed", catalogue(), SEQUENCES).items():
        text = " ".join(
            reports.sentence(group, sequence, found, wording) for group in reports.groups(sequence)
        )
        assert extract(text, sequence, catalogue()) == entities(report["fields"]), text
