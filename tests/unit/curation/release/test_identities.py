"""What may identify somebody is found in any script and notation, and nothing in our own texts is."""

import re
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.curation.release.identities import fold, identities
from cardiolens.phantom.roster import catalogue, study
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.anatomy import DATA, shipped
from tests.support.free_text.free_report import free_report

_PLACE = re.compile("Hôpital|Klinikum|Hospital|Centre|Imaging|Radiology|Kardio-MRT")
EXAMPLES = yaml.safe_load(Path(__file__).with_name("identity_examples.yaml").read_text(encoding="utf-8"))
NOBODY = EXAMPLES.pop("nobody")
KINDS = {"names": {"name"}, "dates": {"date", "age", "number"}, "numbers": {"number", "address", "date"}}


@pytest.mark.parametrize(("group", "text"), [(group, text) for group in EXAMPLES for text in EXAMPLES[group]])
@pytest.mark.parametrize("frame", ["{}", "Scar in the septum, {}; no oedema."])
def test_an_identity_is_found_wherever_it_stands(group: str, text: str, frame: str) -> None:
    found = {one.kind for one in identities(fold(frame.format(text)))}
    assert found & KINDS[group]


@pytest.mark.parametrize("text", NOBODY)
def test_measurements_and_common_words_are_of_nobody(text: str) -> None:
    folded = fold(text)
    assert [folded[one.start : one.end] for one in identities(folded)] == []


def test_nothing_is_found_in_shipped_protocols() -> None:
    tag = "[authors-2026-01]"  # of provenance
    files = sorted(DATA.rglob("*.yaml"))
    texts = [path.read_text(encoding="utf-8").replace(tag, "") for path in files]
    for protocol in shipped():
        for subtask in load_catalogue(protocol).subtasks.values():
            texts += [subtask.question, *subtask.wordings, *(option.text for option in subtask.options)]
    assert len(texts) > 250
    assert [text for text in texts if identities(fold(text))] == []


def test_of_written_reports_persons_and_dates_are_found_and_nothing_else() -> None:
    """Phantom reports of three styles say whom they name; institutions and streets are not sought."""
    found: Counter[str] = Counter()
    written: Counter[str] = Counter()
    false = []
    for number in range(1, 61):
        report = free_report(study(7777, f"PH-{number:04d}"), catalogue())
        text, spans = fold(report.text), []
        passages = identities(text)
        for named in map(fold, report.truth["identities"]):
            n_digits = sum(map(str.isdigit, named))
            kind = "number" if n_digits >= 4 else "place" if n_digits or _PLACE.search(named) else "person"
            for match in re.finditer(re.escape(named), text):
                spans.append(match.span())
                written[kind] += 1
                found[kind] += any(one.start < match.end() and match.start() < one.end for one in passages)
        false += [
            text[one.start : one.end]
            for one in passages
            if not any(one.start < end and start < one.end for start, end in spans)
        ]
    assert written["number"] > 250
    assert found["number"] == written["number"]
    assert found["person"] >= 0.98 * written["person"] > 150
    assert false == []


@given(st.integers(100_000, 10**12), st.text(max_size=20), st.text(max_size=20))
def test_six_digits_are_found_in_any_text(number: int, before: str, after: str) -> None:
    text = fold(f"{before} {number} {after}")
    assert any(str(number)[:5] in text[one.start : one.end] for one in identities(text))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", ["A. ", "1.1-", "name is "])
def test_a_text_made_to_be_slow_is_not(unit: str) -> None:
    began = time.monotonic()
    identities(fold(unit * (60_000 // len(unit))))
    assert time.monotonic() - began < 20
