"""The catalogue `authors-1`: what the public program has, both forms of None, and joined protocols."""

from collections import Counter
from dataclasses import replace

import pytest
import yaml

from cardiolens.base.errors import InputError
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.instantiate import answer, answerable_subtasks
from cardiolens.study.anatomy import DATA, heart, read_yaml

SEQUENCES = ("cine", "lge", "perfusion", "t2")
BOTH = "openprotocol-1+authors-1"
NOTHING = {"lge.enhancement_status": ("normal",), "lge.signal_kind": ()}
CORE = {"lge.enhancement_status": ("abnormal",), "lge.signal_kind": ("mixed",)}


@pytest.fixture(scope="module")
def authors():
    return load_catalogue("authors-1")


@pytest.fixture(scope="module")
def gated():
    return load_catalogue("authors-1-gated")


def fields(catalogue):
    return [subtask for subtask in catalogue.subtasks.values() if subtask.tier == 1]


def asked(catalogue, findings):
    every = {subtask.finding: () for subtask in fields(catalogue) if subtask.sequence == "lge"}
    return {one.id for one in answerable_subtasks(catalogue, every | findings, ["lge"]) if one.tier == 1}


def test_there_are_as_many_fields_as_in_the_public_program(authors):
    assert Counter(one.sequence for one in fields(authors)) == dict(
        zip(SEQUENCES, (11, 11, 5, 5), strict=True)
    )
    assert Counter(one.answer_type for one in fields(authors)) == {"multi": 19, "single": 13}
    views = {
        "cine_sax": 1,
        "cine_4ch": 8,
        "cine_3ch": 2,
        "lge_sax": 9,
        "lge_4ch": 2,
        "perf_sax": 5,
        "t2_sax": 5,
    }
    assert Counter(view for one in fields(authors) for view, _ in one.route) == views
    assert all(len(one.checklist) == 5 and one.only_routed for one in fields(authors))
    assert {one.provenance for one in fields(authors)} == {"[authors-2026-01]"}


def test_nothing_found_is_none_and_an_unknown_finding_has_no_answer(authors):
    assert answer(authors["AL04"], {"lge.high_walls": ()}) == ("Z",)
    assert answer(authors["AL04"], {"lge.high_walls": ("inferior", "anterior")}) == ("A", "D")
    assert answer(authors["AL04"], {}) == ()
    assert answer(authors["AL02"], {"lge.signal_kind": ()}) == ()


def test_with_none_every_study_is_asked_all_but_the_kind(authors):
    assert asked(authors, NOTHING) == {f"AL{n:02}" for n in range(1, 12)} - {"AL02"}


def test_without_none_the_status_decides_over_two_levels(gated):
    assert asked(gated, NOTHING) == {"AL01"}
    scar = CORE | {
        "lge.signal_kind": ("high",),
        "lge.high_walls": ("anterior",),
        "lge.low_walls": ("anterior",),
    }
    assert asked(gated, scar) == {"AL01", "AL02", "AL04"}
    core = scar | CORE
    assert asked(gated, core) == {"AL01", "AL02", "AL04", "AL08"}
    assert gated["AL08"].parent == "AL02"
    assert gated["AL02"].parent == "AL01"
    assert all("Z" not in one.keys and not one.exclusive for one in fields(gated))


def test_joined_protocols_ask_the_shared_subtasks_once(authors):
    joined = load_catalogue(BOTH)
    assert joined.protocol == BOTH
    assert len(joined.subtasks) == 32 + 32 + 6
    assert joined.asked_by["D01"] == ("openprotocol-1", "authors-1")
    assert joined.asked_by["AC01"] == ("authors-1",)
    with pytest.raises(InputError, match="names one protocol twice"):
        load_catalogue("authors-1+authors-1")
    with pytest.raises(InputError, match=r"subtask AC09 differs between them"):
        load_catalogue("authors-1+authors-1-gated")


HEAD = {"protocol": "mine-1", "inherits": "authors-1", "none_option": False}
WRONG = [
    ({"inherits": "authors-9"}, "inherits 'authors-9'; expected another protocol of authors-1"),
    ({"inherited": ["AC99"]}, r"inherited names 'AC99'; expected subtasks of authors-1: AC01"),
    ({"inherited": ["C01"]}, "inherited names 'C01'"),
    ({"none_option": "no"}, "none_option: Input should be a valid boolean"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_cannot_be_inherited_is_named(tmp_path, change, message):
    (tmp_path / "protocol.yaml").write_text(yaml.safe_dump(HEAD | change))
    with pytest.raises(InputError, match=message):
        load_catalogue(str(tmp_path))


def test_a_protocol_of_ones_own_may_inherit_and_replace(tmp_path, authors):
    (tmp_path / "protocol.yaml").write_text(yaml.safe_dump(HEAD))
    own = {
        "id": "AC05",
        "tier": 1,
        "sequence": "cine",
        "field": "diastolic_function",
        "question": "Is filling normal?",
        "answer_type": "single",
        "options": [{"key": "A", "text": "Yes", "values": ["normal"]}, {"key": "B", "text": "No"}],
        "route": {"cine_4ch": 1},
        "provenance": "[mine]",
    }
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"subtasks": [own]}))
    mine = load_catalogue(str(tmp_path))
    assert mine["AC05"].provenance == "[mine]"
    assert mine["AC06"] == authors["AC06"]
    assert mine.anatomy == heart()
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"subtasks": [own, own]}))
    with pytest.raises(InputError, match="AC05 stands twice"):
        load_catalogue(str(tmp_path))


def test_letters_must_ascend_and_parents_must_end(authors):
    from cardiolens.protocol.tasks.catalogue import check

    turned = replace(authors["AL01"], options=authors["AL01"].options[::-1])
    with pytest.raises(InputError, match=r"\['B', 'A'\] do not ascend"):
        check([turned])
    loop = [replace(authors["AL01"], parent="AL02", parent_answers=("A",)), authors["AL02"]]
    with pytest.raises(InputError, match="lead back to AL01"):
        check(loop)


def test_every_field_has_its_counterpart_in_the_open_protocol(authors):
    ours, pairs = load_catalogue("openprotocol-1"), read_yaml(DATA / "authors-1" / "bridge.yaml")
    assert list(pairs) == [one.id for one in fields(authors)]
    for name, pair in pairs.items():
        assert pair["asks"] in {"same", "more", "less", "partly", "nothing"}
        assert ("subtask" in pair) == (pair["asks"] != "nothing")
        assert "subtask" not in pair or ours[pair["subtask"]].sequence == authors[name].sequence
