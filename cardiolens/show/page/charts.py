"""Forms of the charts in Altair: colours are names of the style sheet, and the page fills in the records."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import altair as alt

from cardiolens.show.page.columns import ENDING_WORDS, READINGS, TIER_WORDS

TIERS = list(TIER_WORDS.values())
_INTERVAL = {"low": "95 % CI from", "high": "to"}
_COUNTS = {"n_items": "items", "n_patients": "patients"}
_SCORE = {"value": "value", **_INTERVAL, **_COUNTS}
_NUMBERS = {
    **{"model": "model", "setting": "setting", "absolute_error": "mean absolute error"},
    **{"constant_error": "error of the constant", "bias": "bias"},
    **{"limit_low": "limits of agreement from", "limit_high": "to"},
    **{"n_items": "numbers read", "n_patients": "patients"},
}
_CURVE = {**_INTERVAL, "n_items": "items"}
_WORDS = {"model", "scope", "line", "arm", "setting", "selector", "budget", "measure", "reading", "subtask"}
_WORDS |= {"ending", "flag"}
_TOP = alt.Legend(orient="top")
_PERCENT = alt.Scale(domain=[0, 100])
_SOFT = "var(--ink-soft)"


@cache
def chart_forms() -> dict[str, dict[str, Any]]:
    """Vega-Lite specifications by form of chart."""
    marks_of = {
        "by_model": _by_model(None),
        "by_model_signed": _by_model(0),
        "forest": _forest(),
        "lines": _lines(),
        "index": _index(),
        "endings": _endings(),
        "auroc": _auroc(),
        "calibration_curve": _calibration_curve(),
        "risk": _curve("coverage", "share of answers kept, percent", "risk", "wrong among them, percent"),
        "number_errors": _number_errors(),
        "agreement": _agreement(),
        "recalls": _recalls(),
        "confusion": _confusion(),
    }
    return {name: specification(chart) for name, chart in marks_of.items()}


def specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart as Vega-Lite, without the look and data of Altair."""
    with alt.data_transformers.enable(consolidate_datasets=False):
        form: dict[str, Any] = chart.to_dict()
    return {name: value for name, value in form.items() if name not in ("$schema", "config")}


def _tips(fields: Mapping[str, str]) -> list[alt.Tooltip]:
    """Tooltips of words, counts and numbers with one decimal, by field."""
    return [
        alt.Tooltip(field=name, title=title)
        if name in _WORDS
        else alt.Tooltip(f"{name}:Q", title=title, format=",d" if name in ("n", *_COUNTS) else ".1f")
        for name, title in fields.items()
    ]


def _rows(label: str, step: int, **axis: Any) -> alt.Chart:
    """A chart with a row for each value of a field, in the order of the records."""
    y = alt.Y(f"{label}:N", title=None, sort=None, axis=alt.Axis(**axis))
    return alt.Chart(height=alt.Step(step)).encode(y=y)


def _span(base: alt.Chart, low: str = "low", high: str = "high", style: str = "interval") -> alt.Chart:
    return base.mark_rule(style=style).encode(x=f"{low}:Q", x2=high)


def _points(base: alt.Chart, size: int = 60) -> alt.Chart:
    return base.mark_point(filled=True, size=size, opacity=1)


def _rule(at: float, style: str = "zero", color: str = _SOFT) -> alt.Chart:
    return alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(style=style, color=color).encode(x="at:Q")


def _layers(*layers: alt.Chart, **properties: Any) -> alt.LayerChart:
    """Layers over the records, but those that have data of their own."""
    return alt.layer(*layers, data=alt.NamedData("records"), **properties)


def _by_model(zero: float | None) -> alt.LayerChart:
    """Scores of models, tier by tier."""
    of_tiers = {"title": None, "scale": alt.Scale(domain=TIERS), "legend": _TOP}
    base = _rows("model", 17, labelLimit=240, grid=True).encode(
        yOffset="scope:N", color=alt.Color("scope:N", **of_tiers)
    )
    x = alt.X("value:Q", title="percent", scale=_PERCENT if zero is None else alt.Undefined)
    tips = _tips({"model": "model", "scope": "on", **_SCORE})
    points = _points(base, 80).encode(x=x, shape=alt.Shape("scope:N", **of_tiers), tooltip=tips)
    return _layers(*([] if zero is None else [_rule(zero)]), _span(base), points)


def _auroc() -> alt.LayerChart:
    """AUROC of items that have an interval, beside that of chance."""
    base = _rows("line", 18, labelLimit=240)
    x = alt.X("value:Q", title="AUROC, percent", scale=_PERCENT)
    points = _points(base).encode(x=x, tooltip=_tips({"line": "item", **_SCORE}))
    return _layers(_rule(50), _span(base), points).transform_filter("isValid(datum.low)")


def _forest() -> alt.LayerChart:
    """Differences with both intervals, over the band in which they count as nothing."""
    words, shapes = list(READINGS.values()), ["circle", "square", "diamond", "cross"]
    tones = ["var(--c-shown)", "var(--c-equivalent)", "var(--c-open)", _SOFT]
    base = _rows("line", 22, labelLimit=440, grid=False).encode(
        color=alt.Color("reading:N", title=None, scale=alt.Scale(domain=words, range=tones), legend=_TOP)
    )
    shape = alt.Shape("reading:N", title=None, scale=alt.Scale(domain=words, range=shapes), legend=_TOP)
    names = {"line": "comparison", "model": "model", "scope": "on", "difference": "value"}
    tips = _tips({**names, **_INTERVAL, **_COUNTS, "reading": "reading"})
    x = alt.X("difference:Q", title="difference, points")
    band = alt.Chart(alt.Data(values=[{"from": -2, "to": 2}])).mark_rect(style="band", color="var(--band)")
    layers = band.encode(x="from:Q", x2="to"), _rule(0), _span(base)
    wide = _span(base, "low_90", "high_90", "interval_90")
    return _layers(*layers, wide, _points(base).encode(x=x, shape=shape, tooltip=tips))


def _lines() -> alt.FacetChart:
    """Scores over slice budgets, a line for each selection and a plot for each scope."""
    x = alt.X(
        "place:Q",
        title="slice budget, frames",
        scale=alt.Scale(domain=alt.ExprRef("[-0.4, length(places) - 0.6]"), nice=False, zero=False),
        axis=alt.Axis(
            values=alt.ExprRef("sequence(length(places))"),
            labelExpr="places[datum.value]",
            grid=False,
            labelOverlap=False,
        ),
    )
    color = alt.Color("selector:N", title=None, sort=None, legend=_TOP)
    base = alt.Chart().encode(x=x, color=color)
    y = alt.Y(
        "value:Q",
        title="score, percent",
        scale=alt.Scale(domain=[0, 104], nice=False),
        axis=alt.Axis(values=list(range(0, 101, 20))),
    )
    tips = _tips({"selector": "selection", "budget": "slice budget", "scope": "on", **_SCORE})
    layers = (
        base.mark_rule(style="interval").encode(y="low:Q", y2="high"),
        base.mark_line(strokeWidth=1.5).encode(y=y),
        _points(base).encode(
            y=alt.Y("value:Q", title="score, percent"),
            shape=alt.Shape("selector:N", title=None, sort=None),
            tooltip=tips,
        ),
    )
    header = alt.Header(labelFontWeight=600, labelFontSize=13)
    plots = _layers(*layers, height=220).facet(column=alt.Column("scope:N", title=None, header=header))
    meta = {"facets": "scope", "places": {"of": "budget", "beside": "selector"}}
    return plots.properties(bounds="flush", usermeta=meta).add_params(alt.param(name="places", value=[]))


def _index() -> alt.LayerChart:
    """Indices of collapse beside the limit from which a subtask counts as collapsed."""
    base = _rows("arm", 20, labelLimit=440)
    tones = alt.Scale(domain=["collapsed", ""], range=["var(--c-shown)", "var(--c-equivalent)"])
    names = {"collapse_index": "collapse index", "modal_share": "modal share", "modal_excess": "modal excess"}
    bars = base.mark_bar(height={"band": 0.62}).encode(
        x=alt.X("collapse_index:Q", title="collapse index, percent", scale=_PERCENT),
        color=alt.Color("flag:N", title=None, scale=tones, legend=None),
        tooltip=_tips({"arm": "arm", "subtask": "subtask", **names, "flag": "flag"}),
    )
    limit = _rule(30, "limit", "var(--accent)")
    return _layers(limit, bars).properties(usermeta={"measure": "collapse_index"})


def _endings() -> alt.Chart:
    """How questions ended, one bar for each arm."""
    tones = [f"var(--e{number})" for number in (0, 10, 11, 1, 12, 2, 3, 9, 4, 5, 6, 7, 8)]
    scale = alt.Scale(domain=list(ENDING_WORDS.values()), range=tones)
    bars = (
        _rows("arm", 22, labelLimit=440)
        .mark_bar(height={"band": 0.72})
        .encode(
            x=alt.X("share:Q", title="share of questions, percent", scale=_PERCENT, stack="zero"),
            order="order:Q",
            color=alt.Color("ending:N", title=None, scale=scale, legend=alt.Legend(orient="top", columns=5)),
            tooltip=_tips({"arm": "arm", "ending": "ending", "n": "questions", "share": "share, %"}),
        )
    )
    return bars.properties(usermeta={"measure": "share"})


def _curve(x: str, x_title: str, y: str, y_title: str, *below: alt.Chart) -> alt.LayerChart:
    """Percents with intervals over percents, as a line."""
    base = alt.Chart().encode(x=alt.X(f"{x}:Q", title=x_title, scale=_PERCENT))
    points = _points(base).encode(
        y=alt.Y(f"{y}:Q", title=y_title), tooltip=_tips({x: x_title, y: y_title, **_CURVE})
    )
    line = base.mark_line(strokeWidth=1.5).encode(y=alt.Y(f"{y}:Q", title=y_title, scale=_PERCENT))
    spans = base.mark_rule(style="interval").encode(y="low:Q", y2="high")
    return _layers(*below, spans, line, points, height=260, usermeta={"measure": y})


def _calibration_curve() -> alt.LayerChart:
    ends = alt.Chart(alt.Data(values=[{"at": 0}, {"at": 100}]))
    diagonal = ends.mark_line(strokeDash=[4, 3], strokeWidth=1, color=_SOFT).encode(x="at:Q", y="at:Q")
    return _curve("confidence", "mean confidence, percent", "accuracy", "accuracy, percent", diagonal)


def _number_errors() -> alt.LayerChart:
    """Errors of numbers, with a tick for the reader that always gives the same number."""
    base = _rows("line", 22, labelLimit=440, grid=False)
    x = alt.X("absolute_error:Q", title="mean absolute error, in the unit")
    points = _points(base, 70).encode(x=x, tooltip=_tips(_NUMBERS))
    ticks = base.mark_tick(thickness=2, size=18, color="var(--c-open)")
    constant = ticks.encode(x="constant_error:Q", tooltip=_tips(_NUMBERS))
    return _layers(_rule(0), _span(base), points, constant)


def _agreement() -> alt.LayerChart:
    """Limits of agreement and bias of numbers."""
    base = _rows("line", 22, labelLimit=440, grid=False)
    x = alt.X("bias:Q", title="answer minus truth, in the unit")
    limits, bias = _span(base, "limit_low", "limit_high"), _span(base, "bias_low", "bias_high", "interval_90")
    return _layers(_rule(0), limits, bias, _points(base, 70).encode(x=x, tooltip=_tips(_NUMBERS)))


def _recalls() -> alt.LayerChart:
    """Recalls of rankings."""
    base = _rows("line", 22, labelLimit=440, grid=False).encode(
        color=alt.Color("measure:N", title=None, legend=_TOP), yOffset="measure:N"
    )
    x = alt.X("value:Q", title="percent", scale=_PERCENT)
    tips = _tips({"model": "model", "measure": "measure", "value": "value", **_INTERVAL})
    return _layers(_span(base), _points(base, 70).encode(x=x, tooltip=tips))


def _confusion() -> alt.FacetChart:
    """Confusion matrices of arms, for print."""
    base = alt.Chart(width=alt.Step(44), height=alt.Step(30)).encode(
        x=alt.X("predicted:N", title="called", sort=None, axis=alt.Axis(labelAngle=-40, labelLimit=130)),
        y=alt.Y("gold:N", title="true", sort=None, axis=alt.Axis(labelLimit=170)),
    )
    greys = alt.Scale(domain=[0, 100], range=["#ffffff", "#3c3c3c"])
    cells = base.mark_rect(stroke="var(--ink)", strokeWidth=0.4).encode(
        color=alt.Color("share:Q", title="share of a row, %", scale=greys)
    )
    dark = alt.condition("datum.share > 55", alt.value("#ffffff"), alt.value("#000000"))
    numbers = base.mark_text(fontSize=11).encode(text="n:Q", color=dark)
    facet = alt.Facet("arm:N", title=None, sort=None, header=alt.Header(labelLimit=320))
    return _layers(cells, numbers).facet(facet, columns=2)
