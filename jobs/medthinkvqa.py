"""After a sweep on MedThinkVQA: `python jobs/medthinkvqa.py scores run=outputs/...` prints accuracy by group
of cases, `... submit run=outputs/... arm=<arm_id> out=<file>` writes the submission of one arm, and
`... check file=<file> root=<data> [split=test]` checks one line by line and gives ROUGE-L of its steps.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.cases.files import Source, records
from cardiolens.cases.submission import submission_problems, write_submission
from cardiolens.errors import InputError, RunError
from cardiolens.record.documents import read_configuration
from cardiolens.record.places import Run
from cardiolens.record.privacy import be_private
from cardiolens.results.case_scores import case_scores, step_overlap
from cardiolens.study.cohort import read_cohort

_WORDS = {"scores": ("run",), "submit": ("run", "arm", "out"), "check": ("file", "root", "split")}
_MOST_SHOWN = 20  # mistakes


def main(argv: list[str]) -> int:
    """Do one of the three; return 2 if the input is wrong, 1 if a submission has mistakes, else 0."""
    be_private()
    try:
        if not argv or argv[0] not in _WORDS:
            raise InputError(f"{' '.join(argv[:1]) or 'no word'}: choose one of {', '.join(_WORDS)}")
        words = {"split": "test"} | dict(word.partition("=")[::2] for word in argv[1:])
        legal = _WORDS[argv[0]]
        for name in [*(words.keys() - {*legal, "split"}), *(name for name in legal if name not in words)]:
            raise InputError(f"{name}: {argv[0]} takes exactly {', '.join(legal)}; give each as name=value")
        return {"scores": _scores, "submit": _submit, "check": _check}[argv[0]](words)
    except (InputError, RunError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1


def _scores(words: dict[str, str]) -> int:
    run = Run(Path(words["run"]))
    spec = read_configuration(run)
    cohort = read_cohort(spec.store)
    if cohort is None or spec.dataset.root is None:
        raise InputError(f"run={words['run']}: is no run on MedThinkVQA; give one of dataset=medthinkvqa")
    verdicts, options = tables.read(run.verdicts, tables.VERDICTS), spec.statistics
    print("arm\tattribute\tgroup\taccuracy\tlow\thigh\tcases\tright\tunread")
    for one in case_scores(verdicts, cohort, resamples=options.resamples, seed=options.seed):
        numbers = (one.accuracy, one.low, one.high)
        shown = "\t".join("" if np.isnan(number) else f"{number:.1f}" for number in numbers)
        print(
            f"{one.arm_id}\t{one.attribute}\t{one.group}\t{shown}\t{one.n_cases}\t{one.n_right}\t{one.n_unread}"
        )
    return 0


def _submit(words: dict[str, str]) -> int:
    run = Run(Path(words["run"]))
    spec = read_configuration(run)
    if spec.dataset.root is None:
        raise InputError(f"run={words['run']}: is no run on MedThinkVQA; give one of dataset=medthinkvqa")
    verdicts = tables.read(run.verdicts, tables.VERDICTS, ("arm_id", "study_id", "parsed"))
    arms = pc.unique(verdicts["arm_id"]).to_pylist()
    if words["arm"] not in arms:
        raise InputError(f"arm={words['arm']}: is not in the run; choose from {', '.join(sorted(arms))}")
    rows = verdicts.filter(pc.equal(verdicts["arm_id"], words["arm"])).to_pylist()
    read = {row["study_id"]: row["parsed"][0] for row in rows if row["parsed"]}
    write_submission(Path(words["out"]), Source.of(spec.dataset.root, spec.dataset.split), read, {})
    print(f"submission: {words['out']}")
    return 0


def _check(words: dict[str, str]) -> int:
    if words["split"] not in ("train", "test"):
        raise InputError(f"split={words['split']}: choose train or test")
    source = Source.of(Path(words["root"]), "train" if words["split"] == "train" else "test")
    path = Path(words["file"])
    problems = list(submission_problems(path, source))
    for problem in problems[:_MOST_SHOWN]:
        print(problem)
    if problems:
        print(f"{len(problems)} mistakes")
        return 1
    told = [
        (record, record.get("prediction_twi")) for _, record in records(Source(path.parent, path, "test"))
    ]
    pairs = [step_overlap(record, steps) for record, steps in told if isinstance(steps, dict)]
    print(json.dumps({"lines": len(told), "with_steps": len(pairs)}))
    for place, name in enumerate(("step 1", "step 2")):
        values = [pair[place] for pair in pairs if not np.isnan(pair[place])]
        print(
            f"ROUGE-L of {name}: {np.mean(values):.3f} over {len(values)} cases"
            if values
            else f"{name}: none"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
