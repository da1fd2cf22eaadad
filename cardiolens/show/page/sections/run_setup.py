"""Section on the run itself: models, arms, cohort, protocol, endings of requests, and reused requests."""

from collections import Counter

from cardiolens.base.phrasing import counted
from cardiolens.score.run_results.numerics import phrase
from cardiolens.show.page.columns import ARM, arm_cells, setting, shots_words
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.reader_agreement import ceiling
from cardiolens.show.page.reply_readings import reading_tables
from cardiolens.show.page.sections.cost import cost_tables
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

# in the order of the bars, and in words
ENDINGS = {
    "ok": "read",
    "asked_back": "read when asked back",
    "no_answer": "no answer when asked back",
    "inconsistent": "inconsistent",
    "contradicted": "contradicts itself",
    "parse_error": "not readable",
    "truncated": "cut off",
    "illegal_selection": "illegal selection",
    "refusal": "refused",
    "overflow": "too long for the model",
    "skipped": "skipped",
    "engine_error": "engine failed",
    "missing": "not run",
}


_AUDITS = (
    *(
        Column("model", "model"),
        Column("audited", "read by a person", "count"),
        Column("replies", "replies", "count"),
    ),
    *(Column("misread", "misread, %", "score"), Column("misread_low", "95 % from", "score")),
    *(Column("misread_high", "to", "score"), Column("missed", "missed, %", "score")),
    *(Column("missed_low", "95 % from", "score"), Column("missed_high", "to", "score")),
    *(Column("shift", "share right would move by", "points"), Column("shift_low", "95 % from", "points")),
    Column("shift_high", "to", "points"),
)
_NO_AUDIT = (
    "How often the rules misread a reply is not known of this run: python -m cardiolens.review audit "
    "run=<folder> shows a person a sample of the replies and reports the errors by model."
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
        "Models, arms, cohort and protocol, how every request ended, and what it took.",
        figures=_endings(facts),
        tables=(
            *(_models(facts), *ceiling(facts), _work(facts), *_stages(facts)),
            *(*reading_tables(facts), *_audits(facts)),
            *(_arms(facts), _common_settings(facts), *cost_tables(facts)),
        ),
        notes=_notes(facts),
        is_folded=True,
    )


def _notes(facts: Facts) -> tuple[str, ...]:
    notes = []
    if facts.simulated & set(facts.models):
        names = ", ".join(name for name in facts.models if name in facts.simulated)
        notes.append(
            f"* Simulated readers ({names}) know or ignore the answers by construction: their numbers test "
            "the software, they say nothing about a model."
        )
    if not facts.audits and not facts.simulated.issuperset(facts.models):
        notes.append(_NO_AUDIT)
    notes += _examples(facts)
    notes += _videos(facts)
    notes += _numerics(facts)
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


def _numerics(facts: Facts) -> list[str]:
    """Models with answers of more than one engine, device, attention backend or tensor parallel size."""
    several = {
        name: records
        for manifest in facts.manifests
        for name, records in manifest.get("numerics", {}).items()
        if len(records) > 1
    }
    return [
        f"The answers of {name} come from {len(records)} ways to compute, which round differently, so that "
        f"the same request may have another answer: {'; '.join(map(phrase, records))}."
        for name, records in sorted(several.items())
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


def _endings(facts: Facts) -> tuple[Chart, ...]:
    """One bar per arm; only the first six kinds of ending enter a score."""
    table = _endings_table(facts)
    note = (
        "No answer, not readable, cut off, illegal selection and refused count as wrong; unanswered ones are "
        "in no score."
    )
    choices = ("model",)
    chart = Chart("endings-chart", "How questions ended", "endings", table, None, choices, note)
    return (chart,) if table.rows else ()


def _audits(facts: Facts) -> tuple[Table, ...]:
    """The replies of each model that a person read otherwise than the rules did."""
    records = [
        {"model": entry.model, "audited": entry.audited, "replies": entry.replies}
        | {
            f"{name}{suffix}": 100 * getattr(rate, end)
            for name, rate in (("misread", entry.misread), ("missed", entry.missed), ("shift", entry.shift))
            for suffix, end in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        for entry in facts.audits
    ]
    return (Table.of("audits", "Replies that a person read", _AUDITS, records),) if records else ()


def _endings_table(facts: Facts) -> Table:
    counts: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for row in facts.analysis("how requests ended"):
        if row["channel"] != "text":
            ending = str(row["parse_status"] or row["status"]).partition(":")[0]
            counts[row["arm_id"], ending] += row["n"]
            total[row["arm_id"]] += row["n"]
    records = [
        arm_cells(arm, facts.simulated)
        | {
            "arm": setting(arm),
            "ending": ENDINGS.get(ending, ending),
            "order": at,
            "n": counts[arm.arm_id, ending],
            "share": 100 * counts[arm.arm_id, ending] / total[arm.arm_id],
        }
        for arm in facts.arms
        for at, ending in enumerate(ENDINGS)
        if counts[arm.arm_id, ending]
    ]
    columns = (
        *(*ARM, Column("arm", "arm"), Column("order", "order", "count")),
        *(
            Column("ending", "ending"),
            Column("n", "questions", "count"),
            Column("share", "share, %", "score"),
        ),
    )
    return Table.of("endings_by_arm", "How questions ended, by arm", columns, records)


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
