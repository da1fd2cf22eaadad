"""A language model as judge of reports: it names errors against a reference, by finding, type and weight.

It is asked twice, with the two texts in either order. An error counts where both replies name it; what one
alone names is kept apart. Errors by type with a clinical weight are the idea of GREEN (Ostmeier et al. 2024)
and CRIMSON (Baharoon et al. 2026), which are about radiographs of the chest; the words, the findings and the
weights here are our design, for the heart.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from cardiolens.base.digest import digest_of
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.asking.ask_texts import ask
from cardiolens.protocol.prompts.question import TextRequest

_WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TYPES: Mapping[str, str] = _WORDS["types"]
WEIGHTS: Mapping[str, str] = _WORDS["weights"]
OTHER_FINDING = "other"  # the finding of an error that is of no field of the report
MOST = 24  # errors of one report
ORDERS = ("reference first", "report first")


class ReportError(NamedTuple):
    """One error of a report."""

    finding: str
    type: str
    weight: str


Errors = tuple[ReportError, ...]


@dataclass(frozen=True, slots=True)
class ReportPair:
    """A report and its reference, with the findings that the report's form has."""

    reference: str
    report: str
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgedReport:
    """The errors that both replies of a judge name, and those that one alone names."""

    errors: Errors  # with the lower weight where the two differ
    unsure: Errors
    same_weights: int  # of `errors`

    @staticmethod
    def of(first: Errors, second: Errors) -> "JudgedReport":
        """Join the replies to both orders."""
        weights = [{error[:2]: error.weight for error in reply} for reply in (first, second)]
        shared = sorted(weights[0].keys() & weights[1].keys())
        alone = sorted(weights[0].keys() ^ weights[1].keys())
        lower = [min((by_name[name] for by_name in weights), key=list(WEIGHTS).index) for name in shared]
        return JudgedReport(
            tuple(ReportError(*name, weight) for name, weight in zip(shared, lower, strict=True)),
            tuple(ReportError(*name, {**weights[0], **weights[1]}[name]) for name in alone),
            sum(weights[0][name] == weights[1][name] for name in shared),
        )


def judge_reports(sweep: SweepSpec, pairs: Sequence[ReportPair]) -> list[JudgedReport | None]:
    """Let the model of a sweep judge reports; None where one of its two replies is none of its kind.

    Equal pairs are asked about once.
    """
    replies = iter(ask(sweep, [request for pair in pairs for request in requests_on(pair)]))
    judged = []
    for pair in pairs:
        first, second = (errors_of(next(replies), pair) for _ in ORDERS)
        judged.append(None if first is None or second is None else JudgedReport.of(first, second))
    return judged


def requests_on(pair: ReportPair) -> list[TextRequest]:
    """The two requests about a report: the reference first, and the report first."""
    fence = fenced({"reference": pair.reference, "report": pair.report})
    number = digest_of([pair.reference, pair.report, pair.findings])[:24]
    findings = (*pair.findings, OTHER_FINDING)
    schema = json.dumps(_schema(findings))
    requests = []
    for order, step in zip(ORDERS, (1, -1), strict=True):  # the second in reverse order throughout
        first, second = ("reference", "report")[::step]
        prompt = _WORDS["prompt"].format(
            notice=fence.notice,
            first=fence.blocks[first],
            second=fence.blocks[second],
            findings=", ".join(findings),
            types=_listed(TYPES, step),
            weights=_listed(WEIGHTS, step),
        )
        requests.append(TextRequest(number, order, _WORDS["system"], prompt, schema))
    return requests


def errors_of(reply: str | None, pair: ReportPair) -> Errors | None:
    """The errors that a reply names, one for each finding and type; None for a reply of another form."""
    try:
        tree = parse_json((reply or "").encode())
    except ValueError:
        return None
    entries = tree.get("errors") if isinstance(tree, dict) and tree.keys() == {"errors"} else None
    if not isinstance(entries, list) or len(entries) > MOST:
        return None
    legal = {"finding": (*pair.findings, OTHER_FINDING), "type": (*TYPES,), "weight": (*WEIGHTS,)}
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() != legal.keys():
            return None
        if any(entry[name] not in values for name, values in legal.items()):
            return None
    heaviest: dict[tuple[str, str], ReportError] = {}
    for error in sorted((ReportError(**entry) for entry in entries), key=_heaviness):
        heaviest[error[:2]] = error
    return tuple(heaviest.values())


def _heaviness(error: ReportError) -> int:
    return list(WEIGHTS).index(error.weight)


def _listed(meanings: Mapping[str, str], step: int) -> str:
    return "\n".join(f"  {name}: {meaning};" for name, meaning in list(meanings.items())[::step])


def _schema(findings: Sequence[str]) -> dict[str, object]:
    properties = {
        "finding": {"enum": list(findings)},
        "type": {"enum": list(TYPES)},
        "weight": {"enum": list(WEIGHTS)},
    }
    error = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"errors": {"type": "array", "items": error, "maxItems": MOST}},
        "required": ["errors"],
        "additionalProperties": False,
    }
