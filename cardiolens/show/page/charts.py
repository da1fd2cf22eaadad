"""Forms of the charts in Altair: colours are names of the style sheet, and the page fills in the records."""

from functools import cache
from typing import Any

import altair as alt

from cardiolens.show.page.columns import ENDING_WORDS, READINGS
from cardiolens.show.page.elements import columns_of

_TIPPED = alt.TooltipContent("data")  # the record of a mark: the page writes its cells as the table does
_TOP = alt.Legend(orient="top")
_PERCENT = alt.Scale(domain=[0, 100])
_SOFT = "var(--ink-soft)"
_LIMITS = (("limit_low", "limit_high", "interval"), ("bias_low", "bias_high", "interval_90"))


@cache
def chart_forms() -> dict[str, dict[str, Any]]:
    """Vega-Lite specifications by form of chart, without the look and data of Altair."""
    charts = {
        "by_model": _series("model", "scope", scale=_PERCENT),
        "by_model_signed": _series("model", "scope", _rule(0)),
        "forest": _forest(),
        "lines": _lines(),
        "index": _index(),
        "endings": _endings(),
        "auroc": _estimates("value", "AUROC, percent", 50, scale=_PERCENT).transform_filter(
            "isValid(datum.low)"
        ),  # items that have an interval
        "calibration_curve": _curve("calibration", "confidence", "accuracy", _diagonal()),
        "risk": _curve("risk_and_coverage", "coverage", "risk"),
        "number_errors": _number_errors(),
        "agreement": _estimates("bias", "answer minus truth, in the unit", 0, spans=_LIMITS),
        "recalls": _series("line", "measure", scale=_PERCENT),
        "confusion": _confusion(),
    }
    with alt.data_transformers.enable(consolidate_datasets=False):
        forms = {name: chart.to_dict() for name, chart in charts.items()}
    return {
        name: {field: part for field, part in form.items() if field not in ("$schema", "config")}
        for name, form in forms.items()
    }


def _rows(label: str, step: int = 22) -> alt.Chart:
    """A chart with a row for each value of a column, in the order of the records."""
    axis = alt.Axis(labelLimit=240 if label == "model" else 440, grid=label == "model")
    return alt.Chart(height=alt.Step(step)).encode(y=alt.Y(f"{label}:N", title=None, sort=None, axis=axis))


def _span(base: alt.Chart, low: str = "low", high: str = "high", style: str = "interval") -> alt.Chart:
    return base.mark_rule(style=style).encode(x=f"{low}:Q", x2=high)


def _points(base: alt.Chart, **channels: Any) -> alt.Chart:
    return base.mark_point(filled=True, size=70, opacity=1, tooltip=_TIPPED).encode(**channels)


def _rule(at: float, style: str = "zero", color: str = _SOFT) -> alt.Chart:
    return alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(style=style, color=color).encode(x="at:Q")


def _layers(*layers: alt.Chart, **properties: Any) -> alt.LayerChart:
    """Layers over the records, but those that have data of their own."""
    return alt.layer(*layers, data=alt.NamedData("records"), **properties)


def _series(label: str, by: str, *below: alt.Chart, **x: Any) -> alt.LayerChart:
    """Percents in a row for each label, divided by the values that the records have in a column."""
    series: dict[str, Any] = {"field": by, "type": "nominal", "title": None, "legend": _TOP}
    base = _rows(label, 17).encode(yOffset=f"{by}:N", color=alt.Color(**series))
    points = _points(base, x=alt.X("value:Q", title="percent", **x), shape=alt.Shape(**series))
    return _layers(*below, _span(base), points, usermeta={"series": by})


def _estimates(
    x: str, title: str, zero: float, *above: alt.Chart, spans: Any = ((),), **scale: Any
) -> alt.LayerChart:
    """Numbers with their intervals, a row for each model and setting, over a line at zero or at chance."""
    base = _rows("line")
    points = _points(base, x=alt.X(f"{x}:Q", title=title, **scale))
    return _layers(_rule(zero), *(_span(base, *span) for span in spans), points, *above)


def _number_errors() -> alt.LayerChart:
    """Errors of numbers, with a tick for the reader that always gives the same number."""
    ticks = _rows("line").mark_tick(thickness=2, size=18, color="var(--c-open)", tooltip=_TIPPED)
    constant = ticks.encode(x="constant_error:Q")
    return _estimates("absolute_error", "mean absolute error, in the unit", 0, constant)


def _forest() -> alt.LayerChart:
    """Differences with both intervals, over the band in which they count as nothing."""
    words, shapes = list(READINGS.values()), ["circle", "square", "diamond", "cross"]
    tones = ["var(--c-shown)", "var(--c-equivalent)", "var(--c-open)", _SOFT]
    reading: dict[str, Any] = {"field": "reading", "type": "nominal", "title": None, "legend": _TOP}
    base = _rows("line").encode(color=alt.Color(**reading, scale=alt.Scale(domain=words, range=tones)))
    shape = alt.Shape(**reading, scale=alt.Scale(domain=words, range=shapes))
    x = alt.X("difference:Q", title="difference, points")
    points = _points(base, x=x, shape=shape)
    band = alt.Chart(alt.Data(values=[{"from": -2, "to": 2}])).mark_rect(style="band", color="var(--band)")
    wide = _span(base, "low_90", "high_90", "interval_90")
    return _layers(band.encode(x="from:Q", x2="to"), _rule(0), _span(base), wide, points)


def _lines() -> alt.FacetChart:
    """Scores over slice budgets, a line for each selection and a plot for each scope."""
    series: dict[str, Any] = {"field": "selector", "type": "nominal", "title": None, "legend": _TOP}
    score: dict[str, Any] = {"field": "value", "type": "quantitative", "title": "score, percent"}
    axis = alt.Axis(grid=False, labelAngle=0, labelOverlap=False)
    base = alt.Chart().encode(
        x=alt.X("budget:N", title="slice budget, frames", sort=None, axis=axis),
        xOffset="selector:N",
        color=alt.Color(**series),
    )
    spans = base.mark_rule(style="interval").encode(y="low:Q", y2="high")
    scale = alt.Scale(domain=[0, 104], nice=False)
    lines = base.mark_line(strokeWidth=1.5).encode(
        y=alt.Y(**score, scale=scale, axis=alt.Axis(values=list(range(0, 101, 20))))
    )
    points = _points(base, y=alt.Y(**score), shape=alt.Shape(**series))
    column = alt.Column("scope:N", title=None, header=alt.Header(labelFontWeight=600, labelFontSize=13))
    plots = _layers(spans, lines, points, height=220).facet(column=column)
    return plots.properties(bounds="flush", usermeta={"facets": "scope", "series": "selector"})


def _index() -> alt.LayerChart:
    """Indices of collapse beside the limit from which a subtask counts as collapsed."""
    tones = alt.Scale(domain=["collapsed", ""], range=["var(--c-shown)", "var(--c-equivalent)"])
    x = alt.X("collapse_index:Q", title="collapse index, percent", scale=_PERCENT)
    color = alt.Color("flag:N", title=None, scale=tones, legend=None)
    bars = _bars().encode(x=x, color=color)
    limit = _rule(30, "limit", "var(--accent)")
    return _layers(limit, bars).properties(usermeta={"measure": "collapse_index"})


def _endings() -> alt.Chart:
    """How questions ended, one bar for each arm."""
    tones = [f"var(--e{number})" for number in (0, 10, 11, 1, 12, 2, 3, 9, 4, 5, 6, 7, 8)]
    scale = alt.Scale(domain=list(ENDING_WORDS.values()), range=tones)
    x = alt.X("share:Q", title="share of questions, percent", scale=_PERCENT, stack="zero")
    color = alt.Color("ending:N", title=None, scale=scale, legend=alt.Legend(orient="top", columns=5))
    bars = _bars().encode(x=x, order="order:Q", color=color)
    return bars.properties(usermeta={"measure": "share"})


def _bars() -> alt.Chart:
    return _rows("arm").mark_bar(height={"band": 0.7}, tooltip=_TIPPED)


def _curve(table: str, x: str, y: str, *below: alt.Chart) -> alt.LayerChart:
    """Percents with intervals over percents, as a line."""
    titles = {column.name: f"{column.title}, percent" for column in columns_of(table)}
    base = alt.Chart().encode(x=alt.X(f"{x}:Q", title=titles[x], scale=_PERCENT))
    spans = base.mark_rule(style="interval").encode(y="low:Q", y2="high")
    line = base.mark_line(strokeWidth=1.5).encode(y=alt.Y(f"{y}:Q", title=titles[y], scale=_PERCENT))
    points = _points(base, y=alt.Y(f"{y}:Q", title=titles[y]))
    return _layers(*below, spans, line, points, height=260, usermeta={"measure": y})


def _diagonal() -> alt.Chart:
    ends = alt.Chart(alt.Data(values=[{"at": 0}, {"at": 100}]))
    return ends.mark_line(strokeDash=[4, 3], strokeWidth=1, color=_SOFT).encode(x="at:Q", y="at:Q")


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
