"""Licences in the words of the hub."""

import pytest

from cardiolens.curation.release.hub_head import licence_tags, split_of


@pytest.mark.parametrize(
    ("licence", "tags"),
    [
        ("CC-BY-4.0", {"license": "cc-by-4.0"}),
        ("cc-by-nc-sa-4.0", {"license": "cc-by-nc-sa-4.0"}),
        ("CC0-1.0", {"license": "cc0-1.0"}),
        ("ODbL-1.0", {"license": "odbl"}),
        ("internal", {"license": "other", "license_name": "internal"}),
        ("CC BY 4.0 of all but two", {"license": "other", "license_name": "CC BY 4.0 of all but two"}),
    ],
)
def test_a_licence_that_the_hub_knows_has_its_id_and_no_other_does(
    licence: str, tags: dict[str, str]
) -> None:
    assert licence_tags(licence) == tags


def test_a_split_has_no_hyphen() -> None:
    assert split_of("test-b") == "test_b"
