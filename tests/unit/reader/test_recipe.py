"""The recipe of the small reader."""

from pathlib import Path

import pytest
import torch
import yaml

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_reader_spec
from cardiolens.config.conf_names import packaged_conf
from cardiolens.reader.learn import STATE, check


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


def test_a_state_without_a_curve_is_refused_before_anything_is_read(tmp_path: Path):
    torch.save({"recipe": "{}", "step": 100}, tmp_path / STATE)
    with pytest.raises(InputError, match="is of a training with an earlier version; give another out"):
        check(read_reader_spec([f"out={tmp_path}", "device=cpu"]))
