"""The recipe of the small reader."""

import pytest
import yaml

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_reader_spec
from cardiolens.config.conf_names import packaged_conf


def test_no_cohort_that_ships_is_learned_from():
    learned = {cohort.seed for cohort in read_reader_spec(["out=/nowhere"]).cohorts}
    shipped = set()
    for path in (packaged_conf() / "dataset").glob("*.yaml"):
        phantom = yaml.safe_load(path.read_text()).get("phantom")
        shipped |= {phantom["seed"]} if phantom else set()
    assert shipped
    assert not learned & shipped


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("sead=3", r"sead: unknown option; did you mean seed or read\? choose from seed"),
        ("read.steps=0", "read.steps"),
        ("cohorts=[]", "cohorts"),
        ("device=tpu", "device"),
        ("see.rate=2", "see.rate"),
    ],
)
def test_a_word_that_cannot_be_used_is_named(word, message):
    with pytest.raises(InputError, match=message):
        read_reader_spec(["out=/nowhere", word])
