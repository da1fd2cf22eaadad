"""Drafts of reports of many hospitals: `python bench/hospitals.py [open|closed|second|...|misreadings]`.

Reports, or the lines that they are made of, and their truth are in tests/unit/curation/questions/hospitals. A
draft that is not what its report tells is printed.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "unit" / "curation" / "questions"))

from hospital_reports import Truth, reports, targets

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.numbers import sex_of
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.protocol.tasks.catalogue import load_catalogue

CATALOGUE = load_catalogue("openprotocol-1")


def answers(text: str) -> dict[str, str]:
    """Drafts of a report by rules, without the checks behind them."""
    settled = settle(text, extract(text, sex_of(text, None), CATALOGUE), CATALOGUE)
    return {subtask: "".join(keys) for subtask, keys in settled.answers.items()}


def count(name: str, text: str, truth: Truth) -> Counter[str]:
    """Count what is drafted of a text, and of that what is wrong; print the latter."""
    drafts = answers(text)
    wrong = truth.wrong(drafts)
    for subtask, keys in wrong.items():
        print(f"wrong: {name}: {subtask} {keys}, and it tells {truth.right.get(subtask)}")
    hits = sum(drafts.get(subtask) == keys for subtask, keys in truth.told.items())
    return Counter(drafts=len(drafts), wrong=len(wrong), told=len(truth.told), hits=hits)


if __name__ == "__main__":
    half = sys.argv[1] if len(sys.argv) > 1 else "closed"
    reports_read: Counter[str] = Counter()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports(half, 100 if half == "second" else 30):
        reports_read[report.style] += 1
        counts[report.style] += count(report.name, report.text, report.truth)
    for style, of_style in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        recall = of_style["hits"] / max(1, of_style["told"])
        n_reports = reports_read[style] or reports_read.total()
        tally = f"{of_style['drafts']} drafts, {of_style['wrong']} wrong, recall {recall:.2f}"
        print(f"{style}: {n_reports} reports, {tally}")
    lines = targets(half)
    of_lines = [count(repr(text), text, truth) for text, truth in lines]
    total = sum(of_lines, Counter[str]())
    n_wrong = sum(counts_of_line["wrong"] > 0 for counts_of_line in of_lines)
    recall = total["hits"] / max(1, total["told"])
    print(
        f"{len(lines)} single lines: {total['drafts']} drafts, {total['wrong']} wrong in {n_wrong} lines, "
        f"recall {recall:.2f}"
    )
