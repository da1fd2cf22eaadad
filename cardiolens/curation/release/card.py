"""The data card of a release: README.md with the YAML head of the Hugging Face hub."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from cardiolens.protocol.tasks.catalogue import Catalogue

_HEAD = {
    "language": ["en"],
    "task_categories": ["visual-question-answering"],
    "tags": ["medical", "cardiac-mri", "benchmark", "cardiolens"],
}


def card(facts: Mapping[str, Any], catalogue: Catalogue) -> str:
    """Return the card in Markdown: contents, origin of the answers, canary, and limits of use."""
    head = yaml.safe_dump(
        {"license": "other", "license_name": facts["licence"], "pretty_name": facts["name"], **_HEAD},
        sort_keys=False,
    )
    cohorts = [
        (name, told["patients"], told["studies"], told["questions"])
        for name, told in facts["cohorts"].items()
    ]
    subtasks = [
        (name, catalogue[name].question or "report", counts["questions"], _classes(counts))
        for name, counts in facts["subtasks"].items()
    ]
    unverified = facts["questions"] - facts["verified"]
    verified = (
        f"**Nobody verified {unverified} of the {facts['questions']} answers.**"
        if unverified
        else f"Somebody stands for each of the {facts['questions']} answers."
    )
    origins = ", ".join(f"{name} {count}" for name, count in sorted(facts["origins"].items()))
    return f"""---
{head}---

# {facts["name"]} {facts["number"]}

Questions on cardiac MRI studies, in the words of `{facts["protocol"]}`, made by {facts["made_by"]}. Research
use only; not a medical device. Licence, as the holder of the data gives it: {facts["licence"]}.

## Cohorts

No patient is in two of them.

{_table(("cohort", "patients", "studies", "questions"), cohorts)}

## Questions

{_table(("subtask", "question", "n", "answers by option"), subtasks)}

Answers come from: {origins}. {verified} Evidence and the names of who verified are not part of the release.

{_withheld(facts.get("withheld", ()))}## Use

```
cardiolens release verify=/path/to/{facts["name"]}
cardiolens sweep dataset=/path/to/{facts["name"]} 'model=[...]'
```

Use the installed command `cardiolens`, from any folder but this one: `python -m` looks for modules in the
folder that it is started in, before anything is verified.

`studies/<id>/study.json` names the NIfTI files of a study; `questions.jsonl` has one line a question. Ids are
new: they lead to no patient without a file that is not here. `release.json` has the digest of every file.

## Canary

Test data that turns up in training data makes results worthless. Whoever collects such data can look for
this string:

    {facts["canary"]}
"""


def _withheld(cohorts: Sequence[str]) -> str:
    """Return the section on cohorts without answers, empty where all answers are part of the release."""
    if not cohorts:
        return ""
    return f"""## Withheld answers

The answers of {", ".join(cohorts)} are not part of the release, nor are masks of its studies, and no count
above holds them. A sweep asks these questions and does not judge them. Its replies are written by
`cardiolens release submit=<run> out=<file>`; those who made the release score this file.

"""


def _classes(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{key} {count}" for key, count in counts.items() if key != "questions")


def _table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines)
