"""Figures of a run as Altair charts."""

import math

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import nearest_first


def intervals(scores: pa.Table, metric: str, scope: str) -> alt.LayerChart:
    """Values of single arms with their 95 % intervals; InputError for a metric or scope without scores."""
    single = scores
    for name, value in (("metric", metric), ("scope", scope)):
        legal = sorted(set(single[name].to_pylist()))
        if value not in legal:
            raise InputError(f"{name} is {value!r}; the run has {', '.join(nearest_first(value, legal))}")
        single = single.filter(pc.equal(single[name], value))
    rows = [row for row in single.to_pylist() if math.isfinite(row["value"])]
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("arm_id:N", title=None, sort=None))
    title = f"{metric}, {scope} (percent, 95 % interval)"
    rules = base.mark_rule().encode(x=alt.X("low:Q", title=title), x2="high:Q")
    return alt.layer(rules, base.mark_point(filled=True).encode(x=alt.X("value:Q", title=title)))
