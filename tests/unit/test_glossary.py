"""The reference of names has every name that the page of a run prints, and every metric of the scores."""

import re
from pathlib import Path

from printed_names import printed_names

from cardiolens.score.statistics import statistic

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "page-names.md").read_text("utf-8")
NAMED = set(re.findall(r"`([^`]+)`", PAGE))


def test_every_name_of_the_page_is_in_the_reference() -> None:
    assert len(printed_names()) > 100
    assert sorted(printed_names() - NAMED) == []


def test_every_name_of_the_reference_is_written_somewhere_in_the_code() -> None:
    code = "".join(
        path.read_text("utf-8")
        for path in sorted((ROOT / "cardiolens").rglob("*"))
        if path.suffix in (".py", ".yaml", ".html", ".js") and path.stat().st_size < 200_000
    ).lower()
    assert [name for name in sorted(NAMED) if name.lower() not in code and name != "scores.metric"] == []


def test_every_share_and_every_metric_with_a_unit_of_its_own_is_in_the_reference() -> None:
    assert sorted((statistic._SHARES | statistic.OWN_UNIT) - NAMED - {"text_entity_f1"}) == []
