"""Tables on the run itself: models, arms, cohort, protocol, how requests ended, and what they took."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cardiolens.base.phrasing import counted
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.score.run_results import reply_readings
from cardiolens.score.run_results.stored_replies import phrase
from cardiolens.show.page.columns import ENDING_WORDS, arm_cells, cells, setting
from cardiolens.show.page.elements import Record
from cardiolens.show.page.page_data import Facts
from cardiolens.storage.documents import release_of

CEILING = "ceiling.jsonl"  # in the folder of a review, whose `readings/` has the files of people
_NO_AUDIT = (
    "How often the rules misread a reply is not known of this run: python -m cardiolens.review audit "
    "run=<folder> shows a person a sample of the replies and reports the errors by model."
)
_FRAMES = {  # counters of the manifest; readers and served models report no encoder runs
    "referenced": "frames shown, over all requests",
    "processed": "frames processed for models",
    "encoded": "frames run through vision encoders",
}


def on_run(facts: Facts) -> Iterator[str]:
    """What must be known of the models, and of what was asked."""
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
        f"Prompt {prompt} shows {counted(shots, 'shot')} before each question but those for reports: solved "
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


def model_cells(facts: Facts) -> dict[str, dict[str, Any]]:
    """What each model is, its tokens, and its GPUs and their hours in the last invocation."""
    described = {name: record for manifest in facts.manifests for name, record in manifest["models"].items()}
    placements = (manifest.get("placement", {}) for manifest in facts.manifests)
    groups = [group for placement in placements for wave in placement.get("waves", []) for group in wave]
    gpus = {group["model"]: group["replicas"] * group["gpus_per_replica"] for group in groups}
    hours: Counter[str] = Counter()
    for group in groups:
        if (span := group["span"]) is not None:
            n_gpus = group["replicas"] * group["gpus_per_replica"]
            hours[group["model"]] += n_gpus * (span["ended"] - span["began"]) / 3600
    return {
        usage.model: {
            **described.get(usage.model, {}),
            **asdict(usage),
            "kind": kind_of(facts, usage.model),
            "gpus": gpus.get(usage.model),
            "gpu_hours": hours[usage.model] or None,
        }
        for usage in facts.usage
    }


def models(facts: Facts) -> list[Record]:
    """What each model is and took. Requests overlap: their summed seconds are no time."""
    return [
        row | {"per_request": row["prompt_tokens"] / row["answered"] if row["answered"] else None}
        for row in model_cells(facts).values()
    ]


def ceiling(facts: Facts) -> list[Record]:
    """How far people agree, where their review was exported: what a model can reach at most."""
    people = (model for spec in facts.specs for model in spec.model if model.answers_from == "readings")
    files = sorted({Path(model.source).parent.parent / CEILING for model in people})
    return [_agreement(line) for file in files for line in _lines(file)]


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


def readings_by_model(facts: Facts) -> list[Record]:
    """How replies were read by model."""
    return [cells(facts, row) for row in facts.analysis(reply_readings.SHARES) if row.get("arm_id") is None]


def readings_of_peers(facts: Facts) -> list[Record]:
    """Scores by the rules of others (reading=all)."""
    return [cells(facts, row) for row in facts.analysis(reply_readings.PEERS)]


def audits(facts: Facts) -> list[Record]:
    """The replies of each model that a person read otherwise than the rules did."""
    return [
        {"model": entry.model, "audited": entry.audited, "replies": entry.replies}
        | {
            f"{name}{suffix}": 100 * getattr(getattr(entry, name), end)
            for name in ("misread", "missed", "shift")
            for suffix, end in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        for entry in facts.audits
    ]


def endings_by_arm(facts: Facts) -> list[Record]:
    """One row per arm and ending; those from read to refused enter a score."""
    counts: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for row in facts.analysis("how requests ended"):
        if row["channel"] != "text":
            ending = str(row["parse_status"] or row["status"]).partition(":")[0]
            counts[row["arm_id"], ending] += row["n"]
            total[row["arm_id"]] += row["n"]
    return [
        arm_cells(facts, arm)
        | {"arm": setting(arm), "ending": words, "order": at, "n": number}
        | {"share": 100 * number / total[arm.arm_id]}
        for arm in facts.arms
        for at, (ending, words) in enumerate(ENDING_WORDS.items())
        if (number := counts[arm.arm_id, ending])
    ]


def arms(facts: Facts) -> list[Record]:
    """Every arm, and how its replies were read."""
    read = {row["arm_id"]: row for row in facts.analysis(reply_readings.SHARES) if row.get("arm_id")}
    return [{**read.get(arm.arm_id, {}), **arm_cells(facts, arm), "arm_id": arm.arm_id} for arm in facts.arms]


def fixed(facts: Facts) -> list[Record]:
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
    return _named(rows)


def _version(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['cardiolens']} ({str(manifest['git_commit'] or 'installed')[:12]})"


def _packages(manifest: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in manifest["packages"].items())


def _named(rows: Iterable[tuple[str, object]]) -> list[Record]:
    """Values by name; what is not there has no row."""
    return [{"what": what, "value": value} for what, value in rows if value not in (None, False, 0)]


def work(facts: Facts) -> list[Record]:
    """Requests, frames and seconds of all runs."""
    asked, unique = (sum(getattr(usage, name) for usage in facts.usage) for name in ("asked", "unique"))
    requests: Counter[str] = Counter()
    frames: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for manifest in facts.manifests:
        requests.update(manifest["requests"])
        frames.update(manifest.get("frames", {}))
        seconds.update(manifest["seconds"])
    rows: list[tuple[str, object]] = [
        *(("questions asked under all arms", asked), ("distinct requests", unique)),
        ("saved, as other arms ask the same", asked - unique),
        ("distinct requests with a final answer", sum(usage.answered for usage in facts.usage)),
        *((f"{name} by the last invocation", str(requests[name])) for name in ("executed", "reused")),
        *((words, frames[name]) for name, words in _FRAMES.items()),
        *((f"{step}, seconds", round(value, 3)) for step, value in seconds.items()),
        ("GPU hours held", round(sum(row["gpu_hours"] or 0 for row in model_cells(facts).values()), 4)),
    ]
    return _named(rows)
