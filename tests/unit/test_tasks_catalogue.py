from collections import Counter

import pytest
import yaml

from cardiolens.errors import InputError
from cardiolens.tasks.catalogue import load_catalogue
from cardiolens.tasks.instantiate import answer

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
        return tmp_path

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


def test_every_entry_keeps_its_provenance(catalogue):
    assert all("[" in subtask.provenance for subtask in catalogue.subtasks.values())


def test_details_of_the_tables(catalogue):
    assert catalogue["C03"].route == (("cine_sax", 2), ("cine_4ch", 1), ("cine_2ch", 1))
    assert catalogue["C02"].exclusive == ("A",)
    assert catalogue["L03"].text("E") == "Right ventricular free wall"
    assert catalogue["T04"].text("B") == "Segmental, within one coronary territory"
    assert catalogue["D02"].parent == "D01"
    assert catalogue["D02"].parent_answers == ("C",)
    assert catalogue["C18"].unreadable_without == ("cine_3ch", "cine_4ch")
    temporal = {subtask.id for subtask in catalogue.subtasks.values() if subtask.temporal}
    assert temporal == {"C06", "C07", "C08", "C09", "C10", "C11", "C14", "C15", "C17", "C18"}
    assert [child.id for child in catalogue.children("L01")] == ["L02", "L03", "L04", "L05"]


def test_another_protocol_is_another_set_of_files(write):
    own = load_catalogue("miniature-1", write(SUBTASK))
    assert list(own.subtasks) == ["X1"]
    assert answer(own["X1"], {"lge.enhancement": ("present",)}) == ("B",)


def test_unknown_names_list_the_legal_ones(catalogue):
    with pytest.raises(InputError, match=r"'nope' is not shipped; choose openprotocol-1"):
        load_catalogue("nope")
    with pytest.raises(InputError, match=r"'C99' is not in protocol 'openprotocol-1'; it has C01, C02"):
        catalogue["C99"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": "X9", "parent_answers": ["A"]}, "parent 'X9' is not in the catalogue"),
        ({"parent": "X1"}, "parent and parent_answers go together"),
        ({"route": {"lge_sax": 0}}, "weights must be positive"),
        ({"route": {}}, "route is empty"),
        ({"exclusive": ["C"], "answer_type": "multi"}, r"exclusive \['C'\] not in options"),
        ({"exclusive": ["A"]}, "only multi-select has exclusive options"),
        ({"options": "no_such_set"}, "no option set 'no_such_set'"),
        ({"options": []}, "at least two options"),
        ({"answer_type": "guess"}, "answer_type: Input should be 'single', 'ordinal', 'multi' or 'report'"),
        ({"checklist": ["look"]}, "a checklist has five items"),
        ({"colour": "red"}, "colour"),
        ({"answer_type": "report"}, "report"),
    ],
)
def test_a_contradictory_entry_is_refused(write, change, message):
    with pytest.raises(InputError, match=message):
        load_catalogue("miniature-1", write(SUBTASK | change))


def test_ids_are_unique(write):
    with pytest.raises(InputError, match="subtask X1 stands twice"):
        load_catalogue("miniature-1", write(SUBTASK, SUBTASK))


def test_files_that_are_no_catalogue(write):
    folder = write(SUBTASK)
    (folder / "own.yaml").write_text("subtasks: {: no")
    with pytest.raises(InputError, match=r"own.yaml: not YAML"):
        load_catalogue("miniature-1", folder)
    (folder / "own.yaml").write_text("tasks: []")
    with pytest.raises(InputError, match=r"own.yaml: must hold exactly one key 'subtasks'"):
        load_catalogue("miniature-1", folder)
    with pytest.raises(InputError, match="protocol is 'miniature-1', 'other-1' was asked for"):
        load_catalogue("other-1", folder)
