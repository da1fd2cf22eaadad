"""Drafts of labelled reports against what they tell.

    python bench/hospitals.py FOLDER                          # the rules
    python bench/hospitals.py FOLDER model=NAME out=gate.json # and a model; the record is for gate=

Prints the wrong drafts, then drafts, wrong ones and recall: of all, by manner, and by who drafted them.
hospital_reports.py (tests/unit/curation/questions) says what files hold; without a folder its sets are read.
"""

import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "unit" / "curation" / "questions"))

from hospital_reports import FOLDER, Report, read_labelled

from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.asking.ask_texts import asking_spec
from cardiolens.curation.questions.drafts import merged, truth_of
from cardiolens.curation.questions.model_gate import gate_record
from cardiolens.curation.questions.model_reader import read_with_model
from cardiolens.curation.questions.numbers import sex_of
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.protocol.tasks.catalogue import load_catalogue

CATALOGUE = load_catalogue("openprotocol-1")
Items = list[dict[str, Any]]


def rule_items(text: str) -> Items:
    """Findings of a report by rules."""
    statements = extract(text, sex_of(text, None), CATALOGUE)
    return [statement.record(number) for number, statement in enumerate(statements, start=1)]


def model_items(sweep: SweepSpec, reports: Sequence[Report]) -> list[Items]:
    """Findings of each report by the model of a sweep."""
    sections = [
        {"study_id": one.name, "report_id": one.name, "text": one.text, "sex": sex_of(one.text, None)}
        for one in reports
    ]
    readings = read_with_model(sweep, sections, CATALOGUE)
    losses = Counter(str(loss["reason"]) for _, rejects in readings for loss in rejects)
    print("not believed of the model:", dict(losses.most_common()))
    return [items for items, _ in readings]


def drafts(text: str, findings: Mapping[str, Items]) -> Iterator[tuple[str, str, str]]:
    """Drafts of a report, without the checks behind them: subtask, answer, and who drafted it."""
    extractors = truth_of({"text": text, "findings": findings}, CATALOGUE)["extractors"]
    items, _ = merged(extractors, CATALOGUE, trusted=True)
    yield from ((subtask, "".join(item["answer"]), item["by"]) for subtask, item in items.items())


def count(reports: Sequence[Report], findings: Sequence[Mapping[str, Items]]) -> dict[str, Counter[str]]:
    """Print wrong drafts; return counts of all, by manner, and by who drafted them."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for report, of_report in zip(reports, findings, strict=True):
        made = list(drafts(report.text, of_report))
        for subtask, keys, by in made:
            is_wrong = bool(report.truth.wrong({subtask: keys}))
            counts[f"by {by}"] += Counter(drafts=1, wrong=int(is_wrong))
            if is_wrong:
                told = sorted(report.truth.right.get(subtask, ()))
                print(f"wrong: {report.name}: {subtask} {keys} by {by}, and it tells {told or 'nothing'}")
        counted = report.truth.counts({subtask: keys for subtask, keys, _ in made})
        counts[f"manner {report.manner}"] += counted
        counts["all"] += counted
    return counts


def tally(counted: Counter[str]) -> str:
    """Describe counts."""
    share = 100 * counted["wrong"] / max(1, counted["drafts"])
    recall = f", recall {counted['hits'] / counted['told']:.3f}" if counted["told"] else ""
    return f"{counted['drafts']} drafts, {counted['wrong']} wrong ({share:.1f} %){recall}"


def main(words: Sequence[str]) -> None:
    """Score the reports that the words name."""
    out = next((Path(word.removeprefix("out=")) for word in words if word.startswith("out=")), None)
    about_model = [word for word in words if "=" in word and not word.startswith("out=")]
    paths = [Path(word) for word in words if "=" not in word] or [FOLDER]
    reports = [report for path in paths for report in read_labelled(path)]
    findings: list[dict[str, Items]] = [{"rules": rule_items(report.text)} for report in reports]
    record: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        sweep = None
        if about_model:
            sweep = asking_spec(Path(folder), Path(folder) / "model", CATALOGUE.protocol, about_model)
            for of_report, items in zip(findings, model_items(sweep, reports), strict=True):
                of_report["model"] = items
        counts = count(reports, findings)
        if sweep is not None:
            alone = counts["by model"]
            tested = {"reports": len(reports), "drafts": alone["drafts"], "wrong": alone["wrong"]}
            record = gate_record(sweep, CATALOGUE, tested)
    for name, counted in sorted(counts.items()):
        print(f"{name}: {tally(counted)}")
    if out is not None:
        out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
