"""Misreading rates of the models of a run, and what they could do to differences and to their order."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from cardiolens.curation.review.replies import Place, Sample
from cardiolens.score.statistics.misreading import Stratum, misreading, shift

Readings = dict[Place, tuple[str, ...]]  # option keys; none: no answer
Row = Mapping[str, Any]


def audit_report(sample: Sample, readings: Readings, verdicts: Sequence[Row]) -> dict[str, Any]:
    """Compare the person's readings with those of the rules, as they stand now.

    A reply is misread if the rules name options and the person names others or none; it is missed if the
    rules name none where the person does. `verdicts` are all judged ones, with `model`.
    """
    by_place = {(row["arm_id"], row["qa_id"]): row for row in verdicts}
    models = [_of_model(model, sample, readings, by_place) for model in sample.sizes]
    share = {model: _share_right(verdicts, model) for model in sample.sizes}
    for entry in models:
        entry["right"] = share[entry["model"]]
    ordered = sorted(models, key=lambda entry: -entry["right"])
    return {"schema": "audit-1", "models": ordered, "neighbours": [_pair(*two) for two in pairwise(ordered)]}


def _of_model(
    model: str, sample: Sample, readings: Readings, by_place: Mapping[Place, Row]
) -> dict[str, Any]:
    misread, missed = [], []
    for name, size in sample.sizes[model].items():
        pairs = [
            (by_place[place], readings[place])
            for reply in sample.replies
            if (reply.model, reply.stratum) == (model, name)
            and (place := reply.place) in readings
            and place in by_place
        ]
        differing = [(set(row["parsed"] or ()), set(keys)) for row, keys in pairs]
        net_shift = sum((set(keys) == set(row["gold"])) - bool(row["correct"]) for row, keys in pairs)
        wrong = sum(bool(ours) and ours != theirs for ours, theirs in differing)
        unread = sum(not ours and bool(theirs) for ours, theirs in differing)
        misread.append(Stratum(size, len(pairs), wrong, net_shift))
        missed.append(Stratum(size, len(pairs), unread))
    return {
        "model": model,
        "replies": sum(stratum.size for stratum in misread),
        "audited": sum(stratum.audited for stratum in misread),
        "misread": asdict(misreading(misread)),
        "missed": asdict(misreading(missed)),
        "shift": asdict(shift(misread)),
    }


def _share_right(verdicts: Sequence[Row], model: str) -> float:
    right = [bool(row["correct"]) for row in verdicts if row["model"] == model]
    return sum(right) / len(right)


def _pair(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two models that follow each other: their difference, and whether misreading could turn it."""
    difference = first["right"] - second["right"]
    most = (
        first["misread"]["high"]
        + first["missed"]["high"]
        + second["misread"]["high"]
        + second["missed"]["high"]
    )
    least = first["shift"]["low"] - second["shift"]["high"]
    return {
        "models": [first["model"], second["model"]],
        "difference": difference,
        "most_by_reading": most,  # if every misread or missed reply changed sides
        "could_turn": difference + least < 0,  # within the intervals of the shifts
    }


def lines(report: Mapping[str, Any]) -> list[str]:
    """The report in words."""
    sentences = [
        f"{entry['model']}: {_percent(entry['right'])} right; {_interval(entry['misread'])} misread, "
        f"{_interval(entry['missed'])} missed ({entry['audited']} of {entry['replies']} replies read by a "
        f"person); read by the person, the share right moves by {_points(entry['shift'])}"
        for entry in report["models"]
    ]
    for pair in report["neighbours"]:
        first, second = pair["models"]
        turns = "could turn" if pair["could_turn"] else "does not turn"
        sentences.append(
            f"{first} before {second} by {100 * pair['difference']:.1f} points: misreading moves this by at "
            f"most {100 * pair['most_by_reading']:.1f}, and {turns} the order"
        )
    return sentences


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _interval(estimate: Mapping[str, float]) -> str:
    return f"{_percent(estimate['value'])} [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]"


def _points(estimate: Mapping[str, float]) -> str:
    return (
        f"{100 * estimate['value']:+.1f} points [{100 * estimate['low']:+.1f}, {100 * estimate['high']:+.1f}]"
    )
