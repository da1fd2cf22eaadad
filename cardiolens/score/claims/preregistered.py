"""The one comparison declared before the run: tested alone at 5 % and shown first (protocol 16.12)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.evidence import Evidence, Rows
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.multiple_testing import SWAP_P
from cardiolens.score.statistics.rows import Row

NAME = "declared comparison"
_METRICS = ("primary", f"primary.{SWAP_P}", "primary.bounds")


@dataclass(frozen=True, slots=True)
class Declared:
    """The headline of a model against another's on a tier."""

    model: str
    versus: str
    tier: int


def declared_comparison(
    scores: Sequence[Row], declared: Declared, simulated: Collection[str] = ()
) -> Analysis:
    """The difference that was declared, with its p by itself: no other comparison shares its 5 %."""
    beside = _rows(scores, declared)
    what = f"the headline score on tier {declared.tier}"
    cause = f"Model {declared.model} instead of {declared.versus}"
    if "primary" not in beside or f"primary.{SWAP_P}" not in beside:
        said = f"{cause} was declared, and the run has no headline of both: nothing can be said."
        return Analysis(NAME, list(beside.values()), (Finding("cannot tell", said),))
    if {declared.model, declared.versus} & set(simulated):
        said = f"{cause} was declared, and a simulated reader is no model: nothing is claimed."
        return Analysis(NAME, list(beside.values()), (Finding("cannot tell", said),))
    p = float(str(beside[f"primary.{SWAP_P}"]["value"]))
    evidence = Evidence(p, alone=True, bounds=beside.get("primary.bounds"))
    said_of = sentences.change(cause, what, beside["primary"], evidence)
    return Analysis(NAME, list(beside.values()), (said_of,))


def _rows(scores: Sequence[Row], declared: Declared) -> Rows:
    """Rows of the comparison by metric, in the declared direction."""
    names = f"{PREFIX}{declared.model}", f"{PREFIX}{declared.versus}"
    found: dict[str, Row] = {}
    for row in scores:
        pair = row["arm_id"], row["versus_arm_id"]
        if row["scope"] == f"tier:{declared.tier}" and row["metric"] in _METRICS:
            if pair == names:
                found[str(row["metric"])] = row
            elif pair == names[::-1]:
                found[str(row["metric"])] = _turned(row)
    return found


def _turned(row: Row) -> Mapping[str, object]:
    turned = dict(row) | {"arm_id": row["versus_arm_id"], "versus_arm_id": row["arm_id"]}
    if str(row["metric"]).endswith("_p"):
        return turned
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    return turned | {"value": -value, "low": -high, "high": -low}
