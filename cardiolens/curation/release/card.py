"""The data card of a release: README.md with the YAML head of the Hugging Face hub, and its known limits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from cardiolens.curation.probes.probe_scores import MOST_EXCESS
from cardiolens.curation.release.facts import ATTRIBUTES, NOT_TOLD
from cardiolens.curation.release.question_table import TABLES, description_of, table_schema
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask

FEW = 5  # questions of one subtask; the page of a sweep leaves smaller subtasks out of its means
ALWAYS = (
    "It is for research on models that read images, and measures no benefit to patients.",
    "Cohorts are drawn by patient at random; they are not balanced for answers, scanners or ages.",
    "How often a question can be answered without its images differs by model; `control=[blind]` of a sweep "
    "measures it.",
    "How the holder of the data chose these studies among all patients is not recorded.",
)
_HEAD = {
    "language": ["en"],
    "task_categories": ["visual-question-answering"],
    "tags": ["medical", "cardiac-mri", "benchmark", "cardiolens"],
}
# Licences that the hub knows under the name that SPDX gives them, in small letters; and three others.
_SPDX = """
apache-2.0 cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0
cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0
cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0 mit
"""
_HUB_IDS = {name: name for name in _SPDX.split()}
_HUB_IDS |= {"odbl-1.0": "odbl", "odc-by-1.0": "odc-by", "pddl-1.0": "pddl"}


def card(facts: Mapping[str, Any], catalogue: Catalogue) -> str:
    """Return the card in Markdown: contents, origin of the answers, canary, and limits of use."""
    cohorts = [
        (name, told["patients"], told["studies"], told["questions"])
        for name, told in facts["cohorts"].items()
    ]
    subtasks = [
        (
            name,
            catalogue[name].question or "report",
            _asked_of_whom(catalogue[name]),
            *(facts["asked"][cohort].get(name, 0) for cohort in facts["cohorts"]),
            _classes(counts),
        )
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
{_hub_head(facts)}---

# {facts["name"]} {facts["number"]}

Questions on cardiac MRI studies, in the words of `{facts["protocol"]}`, made by {facts["made_by"]}. Research
use only; not a medical device. Licence, as the holder of the data gives it: {facts["licence"]}.

## Cohorts

No patient is in two of them.

{_table(("cohort", "patients", "studies", "questions"), cohorts)}

{_table(("cohort", "what is told of studies", "value", "studies"), _subgroups(facts))}

{_duplicates(facts["duplicates"])} {_perceptual(facts["perceptual"])}

## Questions

{_table(("subtask", "question", "asked of", *facts["cohorts"], "answers by option"), subtasks)}

Answers come from: {origins}. {verified} Evidence and the names of who verified are not part of the release.

{_table(("kappa of two readers, in the batch", "questions"), _agreement(facts))}

{_probes(facts["probes"])}{_gates(facts.get("gates", ()))}

{_withheld(facts.get("withheld", ()))}## Known limits

{_list(known_limits(facts, catalogue))}

## Use

```
cardiolens release verify=/path/to/{facts["name"]}
cardiolens sweep dataset=/path/to/{facts["name"]} 'model=[...]'
```

Use the installed command `cardiolens`, from any folder but this one: `python -m` looks for modules in the
folder that it is started in, before anything is verified.

```python
datasets.load_dataset("/path/to/{facts["name"]}")  # a split for each cohort
```

`data/` has the same questions as tables, a row each with wording, options and answer{_frames(facts)}.

{_table(("column", "what"), _columns(facts))}

`studies/<id>/study.json` names the NIfTI files of a study; `questions.jsonl` has one line a question, for
sweeps. Ids are new: they lead to no patient without a file that is not here. `release.json` has the digest of
every file.

## Canary

Test data that turns up in training data makes results worthless. Whoever collects such data can look for
this string:

    {facts["canary"]}
"""


def _hub_head(facts: Mapping[str, Any]) -> str:
    """Return the YAML head that the Hugging Face hub and `datasets` read: licence, and a split a cohort."""
    files = [
        {"split": split_of(cohort), "path": f"{TABLES}/{cohort}/*.parquet"}
        for cohort, sizes in facts["cohorts"].items()
        if sizes["questions"]
    ]
    configs = [{"config_name": "default", "data_files": files}]
    head = {**licence_tags(str(facts["licence"])), "pretty_name": facts["name"], **_HEAD, "configs": configs}
    return yaml.safe_dump(head, sort_keys=False)


def licence_tags(licence: str) -> dict[str, str]:
    """Return the hub's own id of a licence that it knows, else `other` with the words of the holder."""
    known = _HUB_IDS.get(licence.strip().lower())
    return {"license": known} if known else {"license": "other", "license_name": licence}


def split_of(cohort: str) -> str:
    """Return the name of a cohort's split: `datasets` takes no hyphen, and cohorts have no underscore."""
    return cohort.replace("-", "_")


def known_limits(facts: Mapping[str, Any], catalogue: Catalogue) -> list[str]:
    """Return a sentence for each limit: of answers, subgroups and duplicates; then those of every release."""
    return [*_of_answers(facts, catalogue), *_of_subgroups(facts), *_of_duplicates(facts), *ALWAYS]


def _of_answers(facts: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    if unverified := facts["questions"] - facts["verified"]:
        yield f"Nobody verified {unverified} of {facts['questions']} answers."
    if small := facts.get("small_batches"):
        yield (
            f"{small} of {facts['questions']} answers were verified in a batch of fewer than 35 questions: "
            "two people agreed, but so few cannot show that 90 % of such answers would be accepted."
        )
    unmeasured = sum(row["questions"] for row in facts["agreement"] if row["kappa"] is None)
    if unmeasured:
        yield f"Agreement of two readers is not known for {unmeasured} of {facts['questions']} questions."
    counts = facts["subtasks"]
    if few := [name for name, by_answer in counts.items() if by_answer["questions"] < FEW]:
        yield f"Fewer than {FEW} questions each: {', '.join(few)}."
    absent = [
        f"{name} {', '.join(missing)}"
        for name, by_answer in counts.items()
        if (missing := [key for key in catalogue[name].keys if key not in by_answer])
    ]
    withheld = facts.get("withheld", ())
    if any(catalogue[name].parent for cohort in withheld for name in facts["asked"][cohort]):
        yield "That a conditional question is asked tells its parent's answer, also where it is withheld."
    if absent and not withheld:
        yield f"Options that are the answer of no question: {'; '.join(absent)}."


def _of_subgroups(facts: Mapping[str, Any]) -> Iterator[str]:
    silent = []
    for name in ATTRIBUTES:
        told = [groups[name] for groups in facts["subgroups"].values() if name in groups]
        values = {value for counts in told for value in counts}
        if not told:
            silent.append(name)
        elif NOT_TOLD in values or len(told) < len(facts["subgroups"]):
            yield f"The {name} of some studies is not told."
        elif len(values) == 1:
            yield f"All studies have one {name}: {next(iter(values))}."
    if silent:
        yield f"Of no study is told: {', '.join(silent)}."


def _of_duplicates(facts: Mapping[str, Any]) -> Iterator[str]:
    if count := facts["duplicates"]["across_cohorts"]:
        yield f"**{count} volumes are in two cohorts**, which their patients' ids do not show."


def _asked_of_whom(subtask: Subtask) -> str:
    """Say which studies a subtask is asked of."""
    what = "every study" if subtask.sequence == "multi" else f"studies with {subtask.sequence}"
    if subtask.parent is None:
        return what
    return f"{what} where {subtask.parent} is {' or '.join(subtask.parent_answers)}"


def _subgroups(facts: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    for cohort, groups in facts["subgroups"].items():
        for name, values in groups.items():
            yield from ((cohort, name, value, count) for value, count in values.items())


def _duplicates(counts: Mapping[str, int]) -> str:
    if not counts["volumes"]:
        return "No volume is in two studies, byte for byte."
    return (
        f"{counts['volumes']} volumes are in more than one study, byte for byte: of these "
        f"{counts['across_patients']} in studies of several patients, {counts['across_cohorts']} in several "
        "cohorts."
    )


def _perceptual(counts: Mapping[str, int]) -> str:
    """Say what perceptual hashes of frames show."""
    within = (
        f"{counts['pairs']} pairs of studies of several patients show the same pictures"
        if counts["pairs"]
        else "No two studies of several patients show the same pictures"
    )
    lists = counts["known_lists"]
    public = f"; {counts['known_pairs']} show a study of {lists} lists of public sets" if lists else ""
    return f"{within}, by perceptual hashes of {counts['frames']} frames{public}."


def _probes(facts: Mapping[str, Any]) -> str:
    """Say what models answer without images."""
    if not facts["questions"]:
        return "No model was asked these questions without images before the release."
    leaks = [name for name, excess in facts["excess"].items() if excess > MOST_EXCESS]
    where = (
        f"more than {MOST_EXCESS:.0%} in {', '.join(leaks)}"
        if leaks
        else f"{MOST_EXCESS:.0%} or less everywhere"
    )
    return (
        f"{facts['models']} models were asked {facts['questions']} of the questions without images before "
        f"the release: beyond the best constant answer they were right in {where}."
    )


def _gates(gates: Sequence[Mapping[str, Any]]) -> str:
    """Say how good the models were that drafted questions alone; people verified these as all others."""
    return "".join(
        f" {gate['model']} alone drafted {gate['questions']} of the questions; in a blind test of "
        f"{gate['reports']} reports {gate['wrong']} of its {gate['drafts']} drafts were wrong."
        for gate in gates
    )


def _frames(facts: Mapping[str, Any]) -> str:
    """Say which frames the tables show, if they show any."""
    if not facts["frames"]:
        return ""
    selector, budget = facts["frames"]["selector"], facts["frames"]["budget"]
    return f", and with the frames that selector `{selector}` shows, at most {budget} a question"


def _columns(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for column in table_schema(frames=bool(facts["frames"])):
        yield f"`{column.name}`", description_of(column)


def _agreement(facts: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    for row in facts["agreement"]:
        yield "not measured" if row["kappa"] is None else f"{row['kappa']:.2f}", row["questions"]


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"* {sentence}" for sentence in sentences)


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
    """Return a table in Markdown, empty without rows."""
    lines = [names, ["---"] * len(names), *rows]
    if len(lines) == 2:
        return ""
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines)
