"""The data card of a release: facts counted from its own files, and README.md with the hub's head and limits.

Nothing in the facts leads to old ids.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.curation.probes.blind_probes import MOST_EXCESS
from cardiolens.curation.release.question_table import TABLES, Contents, split_of, table_schema
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.protocol.tasks.questions import Question
from cardiolens.study.manifest import Study

FEW = 5  # questions of one subtask; the page of a sweep leaves smaller subtasks out of its means
ATTRIBUTES = ("sex", "age band", "vendor", "field strength", "site")  # of a study's subgroups
_NOT_STATED = "not stated"
_MOST_BYTES = 1 << 20  # of the template
Record = dict[str, Any]
Facts = Mapping[str, Any]
_WORDS: Record = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def counted(contents: Contents) -> Record:
    """Count questions and studies by all that the card says of them."""
    questions = [question for asked in contents.cohorts.values() for question in asked]
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        options = question.answer or ["report"]
        answers[question.subtask].update([*options, "questions"])
    return {
        "cohorts": {
            name: _sizes(contents.studies_of(name), asked) for name, asked in contents.cohorts.items()
        },
        "subtasks": {name: dict(sorted(counts.items())) for name, counts in sorted(answers.items())},
        "origins": dict(Counter(question.origin for question in questions)),
        "verified": sum(question.verified for question in questions),
        "questions": len(questions),
        "subgroups": {name: _subgroups(contents.studies_of(name)) for name in contents.cohorts},
        "asked": {
            name: dict(sorted(Counter(question.subtask for question in asked).items()))
            for name, asked in contents.cohorts.items()
        },
        "agreement": _agreement(questions),
        "small_batches": sum(one.verification.get("batch_decision") == "small" for one in questions),
        "probes": _probed(questions),
        "gates": _gates(questions),
    }


def _sizes(studies: Sequence[Study], asked: Sequence[Question]) -> Record:
    patients = {study.manifest.patient_id for study in studies}
    return {"patients": len(patients), "studies": len(studies), "questions": len(asked)}


def _subgroups(studies: Sequence[Study]) -> Record:
    """Count studies by value of each attribute that any of them has."""
    groups_of = [study.manifest.subgroups for study in studies]
    counts = {name: Counter(groups.get(name, _NOT_STATED) for groups in groups_of) for name in ATTRIBUTES}
    return {
        name: dict(sorted(values.items())) for name, values in counts.items() if set(values) != {_NOT_STATED}
    }


def _agreement(questions: Iterable[Question]) -> list[Record]:
    """Count questions by the kappa of the batch that they were verified in; None where nobody measured it."""
    counts = Counter(question.verification.get("kappa") for question in questions)
    ordered = sorted(counts, key=lambda kappa: (kappa is None, kappa))
    return [{"kappa": kappa, "questions": counts[kappa]} for kappa in ordered]


def _gates(questions: Iterable[Question]) -> list[Record]:
    """Return the blind tests of the models that drafted questions alone, each with how many it drafted."""
    names = ("model", "reports", "drafts", "wrong")
    gates = (question.verification.get("gate") for question in questions)
    counts = Counter(tuple((name, gate[name]) for name in names) for gate in gates if isinstance(gate, dict))
    return [{**dict(gate), "questions": count} for gate, count in sorted(counts.items(), key=str)]


def _probed(questions: Iterable[Question]) -> Record:
    """Return how many questions blind probes asked, of how many models, and the excess of each subtask."""
    excess: dict[str, float] = {}
    models: list[int] = []
    for question in questions:
        n_models, value = (question.verification.get(name) for name in ("probes", "blind_excess"))
        if isinstance(n_models, int) and isinstance(value, int | float):
            models.append(n_models)
            excess[question.subtask] = max(float(value), excess.get(question.subtask, -1.0))
    ordered = dict(sorted(excess.items()))
    return {"questions": len(models), "models": min(models, default=0), "excess": ordered}


def card(facts: Facts, catalogue: Catalogue) -> str:
    """Return the card in Markdown: contents, origin of the answers, canary, and limits of use."""
    template = read_text(Path(__file__).with_name("card.md.j2"), _MOST_BYTES)
    jinja = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    leaks = [name for name, excess in facts["probes"]["excess"].items() if excess > MOST_EXCESS]
    columns = table_schema(frames=bool(facts["frames"]))
    return jinja.from_string(template).render(
        facts=facts,
        head=_hub_head(facts),
        table=_table,
        cohorts=[(name, *sizes.values()) for name, sizes in facts["cohorts"].items()],
        subgroups=[
            (cohort, name, value, count)
            for cohort, groups in facts["subgroups"].items()
            for name, values in groups.items()
            for value, count in values.items()
        ],
        subtasks=list(_subtasks(facts, catalogue)),
        agreement=[
            ("not measured" if row["kappa"] is None else f"{row['kappa']:.2f}", row["questions"])
            for row in facts["agreement"]
        ],
        most_excess=f"{MOST_EXCESS:.0%}",
        leaks=leaks,
        limits=known_limits(facts, catalogue),
        columns=[(f"`{column.name}`", column.metadata[b"description"].decode()) for column in columns],
    )


def _subtasks(facts: Facts, catalogue: Catalogue) -> Iterator[tuple[object, ...]]:
    """Yield a row of each subtask: its words, the studies that it is asked about, and how often by cohort."""
    for name, counts in facts["subtasks"].items():
        by_option = ", ".join(f"{key} {count}" for key, count in counts.items() if key != "questions")
        asked = (by_subtask.get(name, 0) for by_subtask in facts["asked"].values())
        subtask = catalogue[name]
        yield name, subtask.question or "report", _asked_of(subtask), *asked, by_option


def _asked_of(subtask: Subtask) -> str:
    what = "every study" if subtask.sequence == "multi" else f"studies with {subtask.sequence}"
    if subtask.parent is None:
        return what
    return f"{what} where {subtask.parent} is {' or '.join(subtask.parent_answers)}"


def _hub_head(facts: Facts) -> str:
    """Return the YAML head that the Hugging Face hub and `datasets` read: licence, and a split a cohort."""
    files = [
        {"split": split_of(cohort), "path": f"{TABLES}/{cohort}/*.parquet"}
        for cohort, sizes in facts["cohorts"].items()
        if sizes["questions"]
    ]
    configs = [{"config_name": "default", "data_files": files}]
    head = {
        **licence_tags(str(facts["licence"])),
        "pretty_name": facts["name"],
        **_WORDS["head"],
        "configs": configs,
    }
    return yaml.safe_dump(head, sort_keys=False)


def licence_tags(licence: str) -> dict[str, str]:
    """Return the hub's own id of a licence that it knows, else `other` with the words of the holder."""
    name = licence.strip().lower()
    if name in _WORDS["licences"].split():
        return {"license": name}
    known = _WORDS["other_licences"].get(name)
    return {"license": known} if known else {"license": "other", "license_name": licence}


def known_limits(facts: Facts, catalogue: Catalogue) -> list[str]:
    """Return a sentence for each limit: of answers, subgroups and duplicates; then those of every release."""
    pairs = facts["perceptual"]["pairs"]
    doubles = [f"**{pairs} pairs of patients show the same pictures**, also across cohorts."] if pairs else []
    return [*_of_answers(facts, catalogue), *_of_subgroups(facts), *doubles, *_WORDS["limits"]]


def _of_answers(facts: Facts, catalogue: Catalogue) -> Iterator[str]:
    counts, total = facts["subtasks"], facts["questions"]
    if unverified := total - facts["verified"]:
        yield f"Nobody verified {unverified} of {total} answers."
    if small := facts["small_batches"]:
        yield (
            f"{small} of {total} answers were verified in a batch of fewer than 35 questions: "
            "two people agreed, but so few cannot show that 90 % of such answers would be accepted."
        )
    if unmeasured := sum(row["questions"] for row in facts["agreement"] if row["kappa"] is None):
        yield f"Agreement of two readers is not known for {unmeasured} of {total} questions."
    if few := [name for name, by_answer in counts.items() if by_answer["questions"] < FEW]:
        yield f"Fewer than {FEW} questions each: {', '.join(few)}."
    missing = {name: [key for key in catalogue[name].keys if key not in counts[name]] for name in counts}
    if absent := [f"{name} {', '.join(keys)}" for name, keys in missing.items() if keys]:
        yield f"Options that are the answer of no question: {'; '.join(absent)}."


def _of_subgroups(facts: Facts) -> Iterator[str]:
    silent = []
    for name in ATTRIBUTES:
        subgroup_lines = [groups[name] for groups in facts["subgroups"].values() if name in groups]
        values = {value for counts in subgroup_lines for value in counts}
        if not subgroup_lines:
            silent.append(name)
        elif _NOT_STATED in values or len(subgroup_lines) < len(facts["subgroups"]):
            yield f"The {name} of some studies is not stated."
        elif len(values) == 1:
            yield f"All studies have one {name}: {next(iter(values))}."
    if silent:
        yield f"Not stated for any study: {', '.join(silent)}."


def _table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown, empty without rows."""
    lines = [names, ["---"] * len(names), *rows] if rows else []
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines)
