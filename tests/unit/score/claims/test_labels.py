"""The label of every finding of a run says whether its sentence holds, by the rows behind it."""

import inspect
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from page_run import PROMPTS, SELECTORS, finished
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.score.claims import sentences
from cardiolens.score.claims.evidence_analysis import Evidence, interval_of
from cardiolens.score.claims.sentences import Finding, Side
from cardiolens.score.run_results.run_analyses import read_judged

Given = Mapping[str, Any]  # the arguments of a sentence


def _of_difference(given: Given) -> Side | None:
    interval, evidence = interval_of(given["row"]), given["evidence"]
    if not evidence.carried:
        return None
    if interval.low > 0 and evidence.keeps(0, math.inf):
        return "above"
    return "below" if interval.high < 0 and evidence.keeps(-math.inf, 0) else None


def _of_margin(given: Given) -> Side | None:
    interval, rows = interval_of(given["row"]), given["rows_by_metric"]
    if Evidence.of(rows, "primary.equivalence").carried and -2 < interval.low <= interval.high < 2:
        return "within"
    if Evidence.of(rows, "primary.beyond").carried and (interval.low >= 2 or interval.high <= -2):
        return "beyond"
    return _of_difference({"row": rows["primary"], "evidence": Evidence.of(rows, "primary")})


def _of_limit(given: Given) -> Side | None:
    interval = interval_of(given["row"])
    if not given["evidence"].carried or interval.low < given["limit"] < interval.high:
        return None
    return "above" if interval.value > given["limit"] else "below"


def _of_repetition(given: Given) -> Side | None:
    if given["row"]["value"] == 0:
        return "within"
    return "above" if given["evidence"].carried else None


_SIDES: Mapping[str, Callable[[Given], Side | None]] = {
    "change": _of_difference,
    "largest": _of_difference,
    "equivalence": _of_margin,
    "threshold": _of_limit,
    "repetition": _of_repetition,
}


def test_the_label_of_every_finding_agrees_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: dict[str, Side | None] = {}

    def recorded(
        make: Callable[..., Finding], side: Callable[[Given], Side | None]
    ) -> Callable[..., Finding]:
        def call(*values: object, **named: object) -> Finding:
            finding = make(*values, **named)
            expected[finding.sentence] = side(inspect.signature(make).bind(*values, **named).arguments)
            return finding

        return call

    for name, side in _SIDES.items():
        monkeypatch.setattr(sentences, name, recorded(getattr(sentences, name), side))
    models = reader("budget_effect", base=0.3, doubling=0.2, clinical=0.4), reader("constant", answer="A")
    run = finished(
        sweep_spec(
            make_cohort(tmp_path, 24),
            *models,
            selector=SELECTORS,
            prompt=PROMPTS[:1],
            budget=[8, 16],
            control=["none", "blind", "repeat"],
            subtask=["C02", "C10", "D01", "D02"],
        )
    )
    stored = [
        finding for one in json.loads(run.analyses.read_text())["analyses"] for finding in one["findings"]
    ]
    known = [finding for finding in stored if finding["sentence"] in expected]
    assert [finding["side"] for finding in known] == [expected[finding["sentence"]] for finding in known]
    assert {"above", "below", "within", "beyond", None} == {finding["side"] for finding in stored}
    rest = [finding for finding in stored if finding not in known]
    assert {finding["side"] for finding in rest} == {"below"}, "a text that is no shortcut"
    for finding in stored:
        assert finding["verdict"] == ("cannot tell" if finding["side"] is None else "supported")
    read = [finding for analysis in read_judged(run)[1].values() for finding in analysis.findings]
    assert [(finding.side, finding.verdict) for finding in read] == [
        (finding["side"], finding["verdict"]) for finding in stored
    ]
