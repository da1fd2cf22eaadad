"""MedThinkVQA composes by naming its data alone: its images have no views, so all are shown."""

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec

DATA = ["dataset=medthinkvqa", "dataset.source=folder"]


def selectors(*words: str) -> list[str]:
    return [selector.name for selector in read_spec(list(words)).selector]


@pytest.mark.parametrize(
    "prompt", ["standard", "direct", "twi_self", "twi_oracle1", "twi_oracle2", "discussion"]
)
def test_every_setting_shows_all_images_where_no_selector_is_named(prompt: str) -> None:
    assert selectors(*DATA, f"prompt=[{prompt}]") == ["all"]


def test_what_is_named_counts() -> None:
    assert selectors(*DATA, "selector=[uniform]") == ["uniform"]
    assert selectors("selector=[random@3]", *DATA) == ["random"]
    assert selectors("+experiment=medthinkvqa", DATA[1]) == ["random", "uniform"]
    assert selectors("+experiment=medthinkvqa", DATA[1], "selector=[all]") == ["all"]
    assert selectors("+experiment=controls", *DATA) == ["all"]
    with pytest.raises(InputError, match="selector clinical: images of a case have no views"):
        selectors(*DATA, "selector=[clinical]")
