"""Draft questions of phantom reports against what the reports say: `python bench/report_drafts.py SEED [n]`.

Free text in three styles with doubts, priors, numbers and planted contradictions goes through the whole verb,
by rules alone. The truth of a report names what it tells for certain of today; any other draft is wrong.
"""

import csv
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from cardiolens.protocol.tasks.catalogue import load_catalogue

MAKE = Path(__file__).resolve().parents[1] / "jobs" / "make_phantom.py"
Counts = dict[str, Counter[str]]  # told, right and wrong, by style and by subtask


def made(folder: Path, seed: int, n: int) -> None:
    """Write reports with their truth, and a study.json for each, without images."""
    words = ["dataset=phantom_ci", f"dataset.phantom.seed={seed}"]
    run([str(MAKE), *words, f"dataset.phantom.n_sampled={n}", f"out={folder}/text", "format=text"])
    run(
        [
            str(MAKE),
            *words,
            "dataset.phantom.canonical=[]",
            "dataset.phantom.n_sampled=1",
            f"out={folder}/one",
        ]
    )
    (model,) = (folder / "one").rglob("study.json")
    for row in csv.DictReader(StringIO((folder / "text" / "reports.csv").read_text(encoding="utf-8"))):
        study = json.loads(model.read_text()) | {"study_id": row["study_id"], "patient_id": row["study_id"]}
        of = folder / "studies" / row["study_id"]
        of.mkdir(parents=True)
        (of / "study.json").write_text(json.dumps(study))


def run(words: list[str]) -> None:
    """Run Python with these words; what it prints is kept back unless it fails."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON Lines file."""
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def counts(folder: Path) -> Counts:
    """Compare the drafts with the truth; wrong ones are printed with what the report says."""
    subtasks = load_catalogue("openprotocol-1").subtasks
    reports = {one["study_id"]: one for one in lines(folder / "text" / "report_truth.jsonl")}
    found: Counts = defaultdict(Counter)
    for report in reports.values():
        told = [one for one in report["findings"] if _is_certain(one)]
        for subtask in {one["subtask"] for one in told}:
            for name in (report["style"], subtask, "all"):
                found[name]["told"] += 1
    for draft in lines(folder / "draft" / "questions.jsonl"):
        report = reports[draft["study"]]
        texts = {option.key: option.text for option in subtasks[draft["subtask"]].options}
        answer = sorted(texts[key] for key in draft["answer"])
        own = [one for one in report["findings"] if one["subtask"] == draft["subtask"]]
        right = any(_is_certain(one) and sorted(one["answer"]) == answer for one in own)
        for name in (report["style"], draft["subtask"], "all"):
            found[name]["right" if right else "wrong"] += 1
        if not right:
            said = [(one["answer"], one["certainty"], "contradicted" * one["contradicted"]) for one in own]
            print("wrong:", draft["study"], report["style"], draft["subtask"], answer, "but", said)
    return found


def _is_certain(finding: dict[str, Any]) -> bool:
    return finding["certainty"] == "certain" and not finding["contradicted"]


def main(seed: int, n: int) -> None:
    """Print a table: what the reports tell, and what of it became right and wrong drafts."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made(folder, seed, n)
        words = [f"reports={folder}/text/reports", f"links={folder}/text/reports.csv"]
        run(["-m", "cardiolens.questions", *words, f"studies={folder}/studies", f"out={folder}/draft"])
        print("| | told | right | wrong | precision | recall |\n|---|---|---|---|---|---|")
        for name, one in sorted(counts(folder).items(), key=lambda item: (item[0] != "all", item[0])):
            drafts = one["right"] + one["wrong"]
            precision = f"{one['right'] / drafts:.3f}" if drafts else "-"
            recall = f"{one['right'] / one['told']:.2f}" if one["told"] else "-"
            print(f"| {name} | {one['told']} | {one['right']} | {one['wrong']} | {precision} | {recall} |")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200)
