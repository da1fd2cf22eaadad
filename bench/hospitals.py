"""Drafts of reports of many hospitals: `python bench/hospitals.py [open|closed|...|misreadings|houses]`.

Reports, or the lines that they are made of, and their truth are in tests/unit/curation/questions/hospitals. A
draft that is not what its report tells is printed. `houses` reads the tenth set with and without the words
of each hospital; who wrote the files saw the first five reports of each.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "unit" / "curation" / "questions"))

from hospital_reports import SEEN, Report, Truth, house_file, reports, targets

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.group_words import with_words
from cardiolens.curation.questions.numbers import sex_of
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue

CATALOGUE = load_catalogue("openprotocol-1")


def answers(text: str, catalogue: Catalogue = CATALOGUE) -> dict[str, str]:
    """Drafts of a report by rules, without the checks behind them."""
    settled = settle(text, extract(text, sex_of(text, None), catalogue), catalogue)
    return {subtask: "".join(keys) for subtask, keys in settled.answers.items()}


def count(name: str, text: str, truth: Truth, catalogue: Catalogue = CATALOGUE) -> Counter[str]:
    """Count what is drafted of a text, and of that what is wrong; print the latter."""
    drafts = answers(text, catalogue)
    wrong = truth.wrong(drafts)
    for subtask, keys in wrong.items():
        print(f"wrong: {name}: {subtask} {keys}, and it tells {truth.right.get(subtask)}")
    hits = sum(drafts.get(subtask) == keys for subtask, keys in truth.told.items())
    return Counter(drafts=len(drafts), wrong=len(wrong), told=len(truth.told), hits=hits)


def houses() -> None:
    """Print what is drafted of each hospital of the tenth set before and after its words were taught."""
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for half, writer in (("tenth", "d"), ("tenth_closed", "e")):
        of_style: dict[str, list[Report]] = defaultdict(list)
        for report in reports(half):
            of_style[report.style].append(report)
        for style, of_house in of_style.items():
            taught = with_words(CATALOGUE, house_file(writer, style))
            print(f"{writer} {style}: {len(taught.house.sentences)} sentences")
            for shown, part in (("seen", of_house[:SEEN]), ("not seen", of_house[SEEN:])):
                for words, catalogue in (("before", CATALOGUE), ("taught", taught)):
                    counted = sum(
                        (count(report.name, report.text, report.truth, catalogue) for report in part),
                        Counter(),
                    )
                    print(f"  {shown}, {words}: {tally(counted)}")
                    totals[f"{writer}, {shown}, {words}"] += counted
    for name, counted in totals.items():
        print(f"{name}: {tally(counted)}")


def tally(counted: Counter[str]) -> str:
    """Describe the counts of some texts."""
    recall = counted["hits"] / max(1, counted["told"])
    return f"{counted['drafts']} drafts, {counted['wrong']} wrong, recall {recall:.2f}"


def halves(half: str) -> None:
    """Print what is drafted of the reports of a half by manner, and of its single lines."""
    reports_read: Counter[str] = Counter()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports(half, 100 if half == "second" else 30):
        reports_read[report.style] += 1
        counts[report.style] += count(report.name, report.text, report.truth)
    for style, of_style in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        n_reports = reports_read[style] or reports_read.total()
        print(f"{style}: {n_reports} reports, {tally(of_style)}")
    lines = targets(half)
    of_lines = [count(repr(text), text, truth) for text, truth in lines]
    total = sum(of_lines, Counter[str]())
    n_wrong = sum(counts_of_line["wrong"] > 0 for counts_of_line in of_lines)
    recall = total["hits"] / max(1, total["told"])
    print(
        f"{len(lines)} single lines: {total['drafts']} drafts, {total['wrong']} wrong in {n_wrong} lines, "
        f"recall {recall:.2f}"
    )


if __name__ == "__main__":
    (chosen,) = sys.argv[1:] or ["closed"]
    houses() if chosen == "houses" else halves(chosen)
