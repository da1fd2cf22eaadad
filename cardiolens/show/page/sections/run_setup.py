"""Section on the run itself: models, arms, cohort, protocol, how requests ended, and what they took."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.protocol.replies import peer_readings
from cardiolens.score.run_results import reply_readings
from cardiolens.score.run_results.stored_replies import phrase
from cardiolens.show.page.columns import ENDING_WORDS, arm_cells, cells, setting, shots_words
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts
from cardiolens.storage.documents import release_of

CEILING = "ceiling.jsonl"  # in the folder of a review, whose `readings/` has the files of people
_NO_AUDIT = (
    "How often the rules misread a reply is not known of this run: python -m cardiolens.review audit "
    "run=<folder> shows a person a sample of the replies and reports the errors by model."
)
_PEERS = tuple(
    column
    for name, words in {reply_readings.STRICT: "strict, with second turns", **peer_readings.WORDS}.items()
    for column in (Column(name, words, "score"), Column(f"{name}_rank", "rank", "count"))
)
_FRAMES = {  # counters of the manifest; readers and served models report no encoder runs
    "referenced": "frames shown, over all requests",
    "processed": "frames processed for models",
    "encoded": "frames run through vision encoders",
}


def run_setup(facts: Facts) -> Section:
    """Models, arms, and what all arms share."""
    note = (
        "No answer, not readable, cut off, illegal selection and refused count as wrong; unanswered ones are "
        "in no score."
    )
    table = _endings(facts)
    return Section(
        "asked",
        "What was run",
        "Models, arms, cohort and protocol, how every request ended, and what it took.",
        figures=(Chart("endings-chart", "How questions ended", "endings", table, None, ("model",), note),),
        tables=(
            *(_models(facts), _ceiling(facts), *_readings(facts)),
            *(_audits(facts), _arms(facts), shared_settings(facts)),
            _named("work", _work(facts)),
        ),
        notes=tuple(_notes(facts)),
        is_folded=True,
    )


def _notes(facts: Facts) -> Iterator[str]:
    if names := ", ".join(name for name in facts.models if name in facts.simulated):
        yield (
            f"* Simulated readers ({names}) know or ignore the answers by construction: their numbers test "
            "the software, they say nothing about a model."
        )
    if not facts.audits and not facts.simulated.issuperset(facts.models):
        yield _NO_AUDIT
    yield from _examples(facts)
    for prompt in sorted({arm.prompt for arm in facts.arms if arm.cine == "video"}):
        yield (
            f"Prompt {prompt} shows the phases of a slice of cine as one video, of the same frames in the "
            "same order; everything else stays single frames. Requests without a video are those of the "
            "same prompt with frames, and are asked once."
        )
    yield from _numerics(facts)
    if people := sorted(facts.people & set(facts.models)):
        yield (
            f"{', '.join(people)}: people, who saw whole studies on the page of review, whatever frames, "
            "budget and prompt their arm names. What they did not read is not in their scores."
        )
    if copies := facts.most("same_pixels"):
        yield (
            f"{copies} {'study holds' if copies == 1 else 'studies hold'} images that stand in another study "
            "of this run too (dataset.allow=[same_pixels]): scores count them as different patients, so that "
            "intervals are too narrow."
        )
    failed = {
        name: reason for manifest in facts.manifests for name, reason in manifest.get("failed", {}).items()
    }
    yield from (f"{name} failed: {reason}" for name, reason in failed.items())
    silent = [usage.model for usage in facts.usage if usage.unique and not usage.answered]
    if unanswered := [name for name in silent if name not in failed]:
        yield f"No request of {', '.join(unanswered)} has an answer."


def _examples(facts: Facts) -> list[str]:
    """How many solved examples each prompt shows, and from which patients they are."""
    whose = "other patients of this cohort, never of the patient asked"
    if n_training := facts.most("examples_kept"):
        whose = f"{n_training} patients of the cohort, who are asked nothing"
    return [
        f"Prompt {prompt} shows {shots_words(shots)} before each question but those for reports: solved "
        f"questions of {whose}."
        for prompt, shots in sorted({(arm.prompt, arm.shots) for arm in facts.arms if arm.shots})
    ]


def _numerics(facts: Facts) -> Iterator[str]:
    """Models with answers of more than one engine, device, attention backend or tensor parallel size."""
    several = {
        name: records
        for manifest in facts.manifests
        for name, records in manifest.get("numerics", {}).items()
        if len(records) > 1
    }
    for name, records in sorted(several.items()):
        yield (
            f"The answers of {name} come from {len(records)} ways to compute, which round differently, so "
            f"that the same request may have another answer: {'; '.join(map(phrase, records))}."
        )


def kind_of(facts: Facts, model: str) -> str:
    """What gave the answers of a model: a person, a simulated reader or a model."""
    if model in facts.people:
        return "person"
    return "simulated reader" if model in facts.simulated else "model"


def _models(facts: Facts) -> Table:
    """What each model is, and its tokens and GPUs. Requests overlap: their summed seconds are no time."""
    described = {name: record for manifest in facts.manifests for name, record in manifest["models"].items()}
    hours = gpu_hours_by_model(facts)
    gpus = {group["model"]: group["replicas"] * group["gpus_per_replica"] for group in _groups(facts)}
    records = [
        {
            **described.get(usage.model, {}),
            **asdict(usage),
            "kind": kind_of(facts, usage.model),
            "per_request": usage.prompt_tokens / usage.answered if usage.answered else None,
            "gpus": gpus.get(usage.model),
            "gpu_hours": hours.get(usage.model),
        }
        for usage in facts.usage
    ]
    return Table.of("models", records)


def _groups(facts: Facts) -> list[Mapping[str, Any]]:
    """Where models ran in the last invocation."""
    placements = (manifest.get("placement", {}) for manifest in facts.manifests)
    return [group for placement in placements for wave in placement.get("waves", []) for group in wave]


def gpu_hours_by_model(facts: Facts) -> dict[str, float]:
    """GPU hours of the last invocation by model; a model that held no GPU is left out."""
    hours: Counter[str] = Counter()
    for group in _groups(facts):
        if (span := group["span"]) is not None:
            n_gpus = group["replicas"] * group["gpus_per_replica"]
            hours[group["model"]] += n_gpus * (span["ended"] - span["began"]) / 3600
    return {model: value for model, value in hours.items() if value}


def _ceiling(facts: Facts) -> Table:
    """How far people agree, where their review was exported: what a model can reach at most."""
    models = (model for spec in facts.specs for model in spec.model if model.answers_from == "readings")
    files = sorted({Path(model.source).parent.parent / CEILING for model in models})
    records = [_agreement(line) for file in files for line in _lines(file)]
    return Table.of("ceiling", records)


def _lines(file: Path) -> list[Mapping[str, Any]]:
    """Agreement rows of a file; none if it is missing or no export of a review."""
    try:
        rows = [parse_json(line) for line in read_text(file).splitlines()]
    except (OSError, ValueError):
        return []
    return [line for line in rows if isinstance(line, dict) and line.get("schema") == "human-agreement-1"]


def _agreement(line: Mapping[str, Any]) -> dict[str, object]:
    record: dict[str, object] = {**line, "readers": ", ".join(map(str, line.get("readers") or ()))}
    for name, scale in (("same", 100), ("kappa", 1), ("ac1", 1)):
        interval = line.get(name) if isinstance(line.get(name), dict) else {}
        for part, field in (("value", name), ("low", f"{name}_low"), ("high", f"{name}_high")):
            number = (interval or {}).get(part)
            record[field] = number * scale if isinstance(number, int | float) else None
    return record


def _readings(facts: Facts) -> tuple[Table, Table]:
    """How replies were read by model, and scores by the rules of others (reading=all)."""
    shares = [cells(facts, row) for row in facts.analysis(reply_readings.SHARES) if row.get("arm_id") is None]
    peers = [cells(facts, row) for row in facts.analysis(reply_readings.PEERS)]
    return Table.of("readings_by_model", shares), Table.of("readings_of_peers", peers, _PEERS)


def _audits(facts: Facts) -> Table:
    """The replies of each model that a person read otherwise than the rules did."""
    records = [
        {"model": entry.model, "audited": entry.audited, "replies": entry.replies}
        | {
            f"{name}{suffix}": 100 * getattr(getattr(entry, name), end)
            for name in ("misread", "missed", "shift")
            for suffix, end in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        for entry in facts.audits
    ]
    return Table.of("audits", records)


def _endings(facts: Facts) -> Table:
    """One row per arm and ending; only the first six kinds of ending enter a score."""
    counts: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for row in facts.analysis("how requests ended"):
        if row["channel"] != "text":
            ending = str(row["parse_status"] or row["status"]).partition(":")[0]
            counts[row["arm_id"], ending] += row["n"]
            total[row["arm_id"]] += row["n"]
    records = [
        arm_cells(arm, facts.simulated)
        | {"arm": setting(arm), "ending": words, "order": at, "n": number}
        | {"share": 100 * number / total[arm.arm_id]}
        for arm in facts.arms
        for at, (ending, words) in enumerate(ENDING_WORDS.items())
        if (number := counts[arm.arm_id, ending])
    ]
    return Table.of("endings_by_arm", records)


def _arms(facts: Facts) -> Table:
    """Every arm, and how its replies were read."""
    read = {row["arm_id"]: row for row in facts.analysis(reply_readings.SHARES) if row.get("arm_id")}
    records = [
        {**read.get(arm.arm_id, {}), **arm_cells(arm, facts.simulated), "arm_id": arm.arm_id}
        for arm in facts.arms
    ]
    absent = [name for name in reply_readings.BOUNDS if not any(name in record for record in records)]
    return Table.of("arms", records).without([*absent, *(() if read else ("n", *reply_readings.READINGS))])


def shared_settings(facts: Facts) -> Table:
    """What all arms share: data, questions, protocol, rules, and the digests that name them."""
    manifest, spec, release = facts.manifests[0], facts.specs[0], release_of(facts.manifests[0])
    resampled = "pictures" if spec.dataset.has_pictures else "patients"
    rows: list[tuple[str, object]] = [
        *(("dataset", manifest["dataset"]), ("release", release)),
        ("release.json, SHA-256", release and release.sha256),
        *(("studies", manifest["studies"]), (f"{resampled} with a verdict", facts.n_patients)),
        *(("protocol", manifest["protocol"]), ("rules that judged", facts.rules)),
        ("catalogue of the protocol, SHA-256", manifest["catalogue_sha256"]),
        ("questions, SHA-256 of the file", manifest["questions_sha256"]),
        *(("questions asked, digest", manifest["questions_digest"]),),
        ("cohort, digest", manifest["cohort_digest"]),
        *(("captions of frames", spec.caption), ("answer format", spec.answer_format)),
        ("subtasks", ", ".join(spec.subtask) or "all that have questions"),
        ("fewest items of a subtask", spec.statistics.min_n),
        *(("resamples", spec.statistics.resamples), ("seed of resamples", str(spec.statistics.seed))),
        ("CardioLens", "; ".join(dict.fromkeys(map(_version, facts.manifests)))),
        ("packages", "; ".join(dict.fromkeys(map(_packages, facts.manifests)))),
    ]
    return _named("fixed", rows)


def _version(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['cardiolens']} ({str(manifest['git_commit'] or 'installed')[:12]})"


def _packages(manifest: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in manifest["packages"].items())


def _named(name: str, rows: Iterable[tuple[str, object]]) -> Table:
    """Values by name; what is not there has no row."""
    records = [{"what": what, "value": value} for what, value in rows if value not in (None, False, 0)]
    return Table.of(name, records)


def _work(facts: Facts) -> Iterator[tuple[str, object]]:
    """Requests, frames and seconds of all runs."""
    asked, unique = (sum(getattr(usage, name) for usage in facts.usage) for name in ("asked", "unique"))
    yield "questions asked under all arms", asked
    yield "distinct requests", unique
    yield "saved, as other arms ask the same", asked - unique
    yield "distinct requests with a final answer", sum(usage.answered for usage in facts.usage)
    for name in ("executed", "reused"):
        number = sum(manifest["requests"][name] for manifest in facts.manifests)
        yield f"{name} by the last invocation", str(number)
    for name, words in _FRAMES.items():
        yield words, sum(manifest.get("frames", {}).get(name, 0) for manifest in facts.manifests)
    seconds: Counter[str] = Counter()
    for manifest in facts.manifests:
        seconds.update(manifest["seconds"])
    yield from ((f"{step}, seconds", round(value, 3)) for step, value in seconds.items())
    yield "GPU hours held", round(sum(gpu_hours_by_model(facts).values()), 4)
