from collections import Counter
from pathlib import Path
from string import ascii_uppercase

import pytest
import yaml

from cardiolens.base.errors import InputError
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.report_text.extract import extract

PROTOCOL = "openprotocol-1"
MINIATURE = {
    "protocol": "miniature-1",
    "option_sets": {
        "yes_no": [
            {"key": "A", "text": "No", "values": ["absent"]},
            {"key": "B", "text": "Yes", "values": ["present"]},
        ]
    },
}
SUBTASK = {
    "id": "X1",
    "tier": 1,
    "sequence": "lge",
    "field": "enhancement",
    "question": "Is anything bright?",
    "answer_type": "single",
    "options": "yes_no",
    "route": {"lge_sax": 1},
    "provenance": "[design]",
}


@pytest.fixture
def write(tmp_path):
    def _write(*subtasks):
        (tmp_path / "protocol.yaml").write_text(yaml.safe_dump(MINIATURE))
        (tmp_path / "own.yaml").write_text(yaml.safe_dump({"subtasks": list(subtasks)}))
        return str(tmp_path)

    return _write


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue(PROTOCOL)


def test_counts_of_the_specification(catalogue):
    tier_1 = [subtask for subtask in catalogue.subtasks.values() if subtask.tier == 1]
    assert Counter(subtask.sequence for subtask in tier_1) == {"cine": 19, "lge": 5, "perfusion": 4, "t2": 4}
    assert Counter(subtask.answer_type for subtask in tier_1) == {"multi": 17, "ordinal": 7, "single": 8}
    assert sum(subtask.parent is None for subtask in tier_1) == 16
    assert all(len(subtask.checklist) == 5 for subtask in tier_1)
    assert Counter(subtask.tier for subtask in catalogue.subtasks.values()) == {1: 32, 2: 4, 3: 2}


def test_files_that_changed_are_loaded_anew_and_others_are_not(write, tmp_path):
    first = load_catalogue(write(SUBTASK))
    assert load_catalogue(write(SUBTASK)) is first
    other = load_catalogue(write(SUBTASK | {"question": "Is anything grey?  "}))
    assert other["X1"].question != first["X1"].question
    assert other.sha256 != first.sha256
    assert load_catalogue(write(SUBTASK)) == first
    (tmp_path / "own.yaml").unlink()
    with pytest.raises(InputError, match="has no subtasks"):
        load_catalogue(str(tmp_path))


def test_unknown_names_list_the_legal_ones(catalogue):
    with pytest.raises(InputError, match=r"'nope' is neither shipped nor a folder; choose .*openprotocol-1"):
        load_catalogue("nope")
    with pytest.raises(InputError, match=r"'C99' is not in protocol 'openprotocol-1'; it has C01, C02"):
        catalogue["C99"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": "X1"}, "parent and parent_answers go together"),
        ({"route": {"lge_sax": 0}}, "weights must be positive"),
        ({"exclusive": ["C"], "answer_type": "multi"}, r"exclusive \['C'\] not in options"),
        ({"exclusive": ["A"]}, "only multi-select has exclusive options"),
        (
            {
                "answer_type": "multi",
                "options": [{"key": key, "text": f"text {key}"} for key in ascii_uppercase[:20]],
            },
            "expected at most 10, as legal replies double",
        ),
        ({"checklist": ["look"]}, "a checklist has five items"),
        ({"checklist": [*"abcd", "\ufdd07\ufdd1"]}, r"holds U\+FDD0, which is reserved"),
    ],
)
def test_a_contradictory_entry_is_refused(write, change, message):
    with pytest.raises(InputError, match=message):
        load_catalogue(write(SUBTASK | change))


REPORT = {
    "id": "X2",
    "tier": 2,
    "sequence": "lge",
    "field": "report",
    "question": "Write.",
    "answer_type": "report",
    "route": {"lge_sax": 1},
    "provenance": "[design]",
    "report_fields": ["X1"],
}
TRAIT = {
    "of": {"any": {"field": "enhancement", "normal": "No", "present": "Yes"}},
    "states": {"present": ["bright"]},
}
LEXICON = {"sequences": {"lge": {"traits": {"enhancement": TRAIT}}}}


def test_reports_are_read_with_the_lexicon_of_their_own_folder(write):
    folder = write(SUBTASK, REPORT)
    (Path(folder) / "lexicon.yaml").write_text(yaml.safe_dump(LEXICON))
    own = load_catalogue(folder)
    assert extract("Something is bright.", "lge", own) == {("enhancement", "Yes")}
    assert extract("There is late enhancement.", "lge", own) == frozenset()
    assert extract("There is no bright spot.", "lge", own) == {("enhancement", "No")}
    changed = LEXICON | {"aliases": {"br": "bright"}}
    (Path(folder) / "lexicon.yaml").write_text(yaml.safe_dump(changed))
    assert load_catalogue(folder).sha256 != own.sha256


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"aliases": ["br"]}, "words of 'lge' cannot be used"),
        (
            {"places": {"front": ["(anterior"]}},
            "cannot be used .* bracket that nothing closes",
        ),
        (
            {"sequences": {"lge": {"traits": {"x": TRAIT | {"places": {"x": {"front": "a"}}}}}}},
            r"lge: no report has 'a' as 'x'; use the option texts of enhancement",
        ),
    ],
)
def test_a_lexicon_that_cannot_be_used_is_refused_when_it_is_loaded(write, change, message):
    """Not after the model has written its reports."""
    folder = write(SUBTASK, REPORT)
    with pytest.raises(InputError, match=r"lexicon.yaml: cannot be read"):
        load_catalogue(folder)
    (Path(folder) / "lexicon.yaml").write_text(yaml.safe_dump(LEXICON | change))
    with pytest.raises(InputError, match=message):
        load_catalogue(folder)


def test_every_question_has_two_further_wordings(catalogue):
    subtasks = catalogue.subtasks
    assert {name for name, subtask in subtasks.items() if len(subtask.wordings) < 2} == set()
    said = [text for subtask in subtasks.values() for text in (subtask.question, *subtask.wordings)]
    assert len(set(said)) == len(said)
