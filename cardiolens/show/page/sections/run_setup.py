"""Section on the run itself: models, arms, cohort, protocol, endings of requests, and reused requests."""

from collections import Counter

from cardiolens.base.phrasing import counted
from cardiolens.show.page.columns import ARM, arm_cells, shots_words
from cardiolens.show.page.elements import Column, Section, Table
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.reader_agreement import ceiling
from cardiolens.storage.documents import release_of

_MODELS = (
    Column("model", "model"),
    Column("kind", "kind"),
    Column("model_key", "key"),
    Column("engine", "engine"),
    Column("dtype", "number type"),
    Column("device", "device"),
    Column("asked", "asked", "count"),
    Column("unique", "distinct", "count"),
    Column("answered", "answered", "count"),
)

_STAGES = (
    Column("model", "model"),
    Column("stage", "stage", "count"),
    Column("asked", "chains that came to it", "count"),
    Column("unique", "distinct requests", "count"),
    Column("executed", "executed by the last invocation", "count"),
    Column("refused", "refused", "count"),
    Column("failed", "failed", "count"),
)

UNVERIFIED_ALLOWED = "answers that nobody verified were allowed (dataset.allow_unverified=true)"

PUBLIC_HEARTS = (
    "pictures and labels are of public sets, which may be in the training data of any model: a high score "
    "may be memory; the answers are labels of the sets, which nobody verified for these questions"
)

PUBLIC_BENCHMARK = (
    "closed questions of a public benchmark alone; its pictures, questions and answers may be in the "
    "training data of any model: a high score may be memory"
)


def run_setup(facts: Facts) -> Section:
    """Tables of models, of arms, and of the settings that all arms share."""
    return Section(
        "asked",
        "What was run",
        "Models, arms, cohort and protocol, how every request ended, and what was not computed twice.",
        tables=(
            _models(facts),
            *ceiling(facts),
            _work(facts),
            *_stages(facts),
            _endings(facts),
            _arms(facts),
            _common_settings(facts),
        ),
        notes=_notes(facts),
    )


def _notes(facts: Facts) -> tuple[str, ...]:
    notes = []
    if facts.simulated & set(facts.models):
        names = ", ".join(name for name in facts.models if name in facts.simulated)
        notes.append(
            f"* Simulated readers ({names}) know or ignore the answers by construction: their numbers test "
            "the software, they say nothing about a model."
        )
    notes += _examples(facts)
    notes += _videos(facts)
    if people := sorted(facts.header.people & set(facts.models)):
        notes.append(
            f"{', '.join(people)}: people, who saw whole studies on the page of review, whatever frames, "
            "budget and prompt their arm names. What they did not read is not in their scores."
        )
    if copies := max(int(manifest.get("same_pixels", 0)) for manifest in facts.manifests):
        notes.append(
            f"{copies} {'study holds' if copies == 1 else 'studies hold'} images that stand in another study "
            "of this run too (dataset.allow_same_pixels): scores count them as different patients, so that "
            "intervals are too narrow."
        )
    if withheld := _withheld(facts):
        notes.append(
            f"The answers of {counted(withheld, 'question')} are withheld: they were asked, their "
            "replies are in no score and count nowhere as wrong."
        )
    errors = {
        name: reason for manifest in facts.manifests for name, reason in manifest.get("failed", {}).items()
    }
    notes += [f"{name} failed: {reason}" for name, reason in errors.items()]
    without_answer = [usage.model for usage in facts.usage if usage.unique and not usage.answered]
    if unanswered := [name for name in without_answer if name not in errors]:
        notes.append(f"No request of {', '.join(unanswered)} has an answer.")
    return tuple(notes)


def _examples(facts: Facts) -> list[str]:
    """How many solved examples each prompt shows, and whose they are."""
    n_training = max(int(manifest.get("examples_kept", 0)) for manifest in facts.manifests)
    whose = (
        f"{n_training} patients of the cohort train, of whom nothing is asked"
        if n_training
        else ("other patients of this cohort, never of the patient asked")
    )
    return [
        f"Prompt {prompt} shows {shots_words(shots)} before each question but those for reports: solved "
        f"questions of {whose}."
        for prompt, shots in sorted({(arm.prompt, arm.shots) for arm in facts.arms if arm.shots})
    ]


def _videos(facts: Facts) -> list[str]:
    """Which prompts show videos, and what stays a frame."""
    return [
        f"Prompt {prompt} shows the phases of a slice of cine as one video, of the same frames in the same "
        "order; everything else stays single frames. Requests without a video are those of the same prompt "
        "with frames, and are asked once."
        for prompt in sorted({arm.prompt for arm in facts.arms if arm.cine == "video"})
    ]


def _withheld(facts: Facts) -> int:
    """Number of questions that were asked and not judged; runs seen as one asked the same questions."""
    return max(int(manifest.get("withheld", 0)) for manifest in facts.manifests)


def _models(facts: Facts) -> Table:
    model_records = {
        name: record for manifest in facts.manifests for name, record in manifest["models"].items()
    }
    records = [
        {
            **model_records.get(usage.model, {}),
            "kind": _kind(usage.model, facts),
            "model": usage.model,
            "asked": usage.asked,
            "unique": usage.unique,
            "answered": usage.answered,
        }
        for usage in facts.usage
    ]
    return Table.of("models", "Models", _MODELS, records)


def _kind(model: str, facts: Facts) -> str:
    if model in facts.header.people:
        return "person"
    return "simulated reader" if model in facts.simulated else "model"


def _work(facts: Facts) -> Table:
    n_asked, unique = (sum(getattr(usage, name) for usage in facts.usage) for name in ("asked", "unique"))
    n_answered = sum(usage.answered for usage in facts.usage)
    rows: list[tuple[str, int]] = [
        ("questions asked under all arms", n_asked),
        ("distinct requests", unique),
        ("saved, as other arms ask the same", n_asked - unique),
        ("distinct requests with a final answer", n_answered),
    ]
    for name in ("executed", "reused"):
        total = sum(manifest["requests"][name] for manifest in facts.manifests)
        rows.append((f"{name} by the last invocation", total))
    return Table("work", "Work, and work saved", (Column("what", ""), Column("n", "number", "count")), rows)


def _stages(facts: Facts) -> tuple[Table, ...]:
    """Requests of chains by stage; runs that the page joins stand one below the other."""
    records = [stage for manifest in facts.manifests for stage in manifest.get("stages", [])]
    return (Table.of("stages", "Requests in chains, by stage", _STAGES, records),) if records else ()


def _endings(facts: Facts) -> Table:
    counts: Counter[str] = Counter()
    for row in facts.analysis("how requests ended").rows:
        if row["channel"] != "text":
            counts[row["parse_status"] or row["status"]] += row["n"]
    columns = (Column("ending", "ending"), Column("n", "number", "count"))
    return Table("endings", "How questions ended, over all arms", columns, sorted(counts.items()))


def _arms(facts: Facts) -> Table:
    records = [arm_cells(arm, facts.simulated) | {"arm_id": arm.arm_id} for arm in facts.arms]
    return Table.of("arms", f"Arms ({len(facts.arms)})", (*ARM, Column("arm_id", "arm")), records)


def _common_settings(facts: Facts) -> Table:
    manifest, spec = facts.manifests[0], facts.specs[0]
    withheld = _withheld(facts)
    rows: list[tuple[str, str | int]] = [
        ("dataset", manifest["dataset"]),
        *([("release", str(release))] if (release := release_of(manifest)) else []),
        ("studies", manifest["studies"]),
        ("patients with a verdict", facts.n_patients),
        ("protocol", str(manifest["protocol"])),
        *([("questions", UNVERIFIED_ALLOWED)] if spec.dataset.allow_unverified else []),
        *([("public hearts", PUBLIC_HEARTS)] if spec.dataset.public_hearts else []),
        *([("public benchmark", PUBLIC_BENCHMARK)] if spec.dataset.has_pictures else []),
        *([("questions with withheld answers", withheld)] if withheld else []),
        ("captions", spec.caption),
        ("answer format", spec.answer_format),
        ("subtasks", ", ".join(spec.subtask) or "all that have questions"),
        ("bootstrap resamples", spec.statistics.resamples),
        ("seed of the statistics", spec.statistics.seed),
        ("CardioLens", f"{manifest['cardiolens']} ({str(manifest['git_commit'] or 'installed')[:12]})"),
        ("packages", ", ".join(f"{name} {version}" for name, version in manifest["packages"].items())),
    ]
    return Table("fixed", "What is the same for all arms", (Column("what", ""), Column("value", "")), rows)
