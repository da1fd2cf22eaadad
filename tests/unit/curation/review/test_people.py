"""Links of people: one each, the same whenever the page is served again, and for their owner alone."""

import stat

import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.review.people import LINKS, read_people


def test_everyone_has_a_link_that_stays_and_more_may_join(tmp_path):
    first = read_people(tmp_path, ("anna", "berta"), None)
    later = read_people(tmp_path, ("carla",), "third")
    assert first.by_token.items() <= later.by_token.items()
    assert first.key == later.key
    assert read_people(tmp_path, (), None) == later
    assert {person.name: person.role for person in later.by_token.values()} == {
        **dict.fromkeys(("anna", "berta", "carla"), "reader"),
        "third": "adjudicator",
    }
    assert len(set(later.by_token)) == 4
    assert stat.S_IMODE((tmp_path / LINKS).stat().st_mode) == 0o600


def test_a_token_is_of_one_person_and_no_other_is_anybodys(tmp_path):
    people = read_people(tmp_path, ("anna",), None)
    (token,) = people.by_token
    assert people.owner(token).name == "anna"
    for other in ("", token[:-1], f"{token}x", token.swapcase(), "\ud800"):
        assert people.owner(other) is None


@pytest.mark.parametrize(
    ("readers", "third", "message"),
    [
        ((), None, "readers= is not given"),
        (("Anna Schmidt",), None, "expected pseudonyms"),
        (("anna",), "anna", "name each person once"),
        (("third",), None, "is adjudicator of this review already"),
    ],
)
def test_people_who_cannot_be_named_so_are_refused(tmp_path, readers, third, message):
    if "already" in message:
        read_people(tmp_path, ("anna",), "third")
    with pytest.raises(InputError, match=message):
        read_people(tmp_path, readers, third)


def test_links_that_others_can_read_or_that_are_damaged_are_refused(tmp_path):
    read_people(tmp_path, ("anna",), None)
    (tmp_path / LINKS).chmod(0o644)
    with pytest.raises(InputError, match="others may read it"):
        read_people(tmp_path, (), None)
    for content in ("", "[]", '{"schema": "links-1"}', "[" * 9000):
        (tmp_path / LINKS).write_text(content)
        (tmp_path / LINKS).chmod(0o600)
        with pytest.raises(InputError, match="pass on the new links"):
            read_people(tmp_path, (), None)
