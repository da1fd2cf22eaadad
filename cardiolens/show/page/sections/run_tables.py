"""Tables on the run itself: models, arms, cohort, protocol, how requests ended, and what they took."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

from cardiolens.base.phrasing import counted
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.score.run_results.reply_readings import SHARES
from cardiolens.score.run_results.stored_replies import NUMERICS, phrase
from cardiolens.show.page.columns import ENDING_WORDS, arm_cells, setting
from cardiolens.show.page.elements import Record
from cardiolens.show.page.page_data import Facts
from cardiolens.storage.documents import release_of

CEILING = "ceiling.jsonl"  # in the folder of a review, whose `readings/` has the files of people
_ENDS = (("", "value"), ("_low", "low"), ("_high", "high"))  # of intervals, in names of columns


def on_run(facts: Facts) -> Iterator[str]:
    """What must be known of the models, and of what was asked."""
    if names := ", ".join(name for name in facts.models if name in facts.simulated):
        yield (
            f"* Simulated readers ({names}) know or ignore the answers by construction: their numbers test "
            "the software, they say nothing about a model."
        )
    if not facts.audits and not facts.simulated.issuperset(facts.models):
        yield (
            "How often the rules misread a reply is not known of this run: python -m cardiolens.review audit "
            "run=<folder> shows a person a sample of the replies and reports the errors by model."
        )
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
    failed = facts.of_manifests("failed")
    yield from (f"{name} failed: {reason}" for name, reason in failed.items())
    silent = [row["model"] for row in facts.usage if row["unique"] and not row["answered"]]
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
    ways: dict[str, Counter[tuple[Any, ...]]] = {}
    for name, record in (
        (name, record)
        for manifest in facts.manifests
        for name, records in manifest.get("numerics", {}).items()
        for record in records
    ):
        way = tuple(record[column] for column in NUMERICS)
        ways.setdefault(name, Counter())[way] += record["requests"]
    for name, counts in sorted(ways.items()):
        if len(counts) > 1:
            each = [
                phrase({**dict(zip(NUMERICS, way, strict=True)), "requests": n}) for way, n in counts.items()
            ]
            yield (
                f"The answers of {name} come from {len(each)} ways to compute, which round differently, so "
                f"that the same request may have another answer: {'; '.join(each)}."
            )


def kind_of(facts: Facts, model: str) -> str:
    """What gave the answers of a model: a person, a simulated reader or a model."""
    if model in facts.people:
        return "person"
    return "simulated reader" if model in facts.simulated else "model"


def model_cells(facts: Facts) -> dict[str, dict[str, Any]]:
    """What each model is, its tokens, and its GPUs and their hours in the last invocation.

    Requests overlap: their summed seconds are no time.
    """
    described, gpus, hours = facts.of_manifests("models"), dict[str, float](), Counter[str]()
    placements = (manifest.get("placement", {}) for manifest in facts.manifests)
    for group in (group for of in placements for wave in of.get("waves", []) for group in wave):
        model, n_gpus = group["model"], group["replicas"] * group["gpus_per_replica"]
        gpus[model] = n_gpus
        if (span := group["span"]) is not None:
            hours[model] += n_gpus * (span["ended"] - span["began"]) / 3600
    found = {}
    for row in facts.usage:
        model, n_counted = row["model"], row["answered"] if row["prompt_tokens"] else 0  # readers count none
        found[model] = {
            **described.get(model, {}),
            **row,
            "kind": kind_of(facts, model),
            "gpus": gpus.get(model),
            "gpu_hours": hours[model] or None,
            "per_request": row["prompt_tokens"] / n_counted if n_counted else None,
            "output_per_request": row["output_tokens"] / n_counted if n_counted else None,
            "last_reply": row["last_at"] and f"{row['last_at'].astimezone(UTC):%Y-%m-%d}",
        }
    return found


def models(facts: Facts) -> list[Record]:
    """What each model is and took."""
    return list(model_cells(facts).values())


def ceiling(facts: Facts) -> list[Record]:
    """How far people agree, where their review was exported: what a model can reach at most."""
    people = (model for spec in facts.specs for model in spec.model if model.answers_from == "readings")
    files = sorted({Path(model.source).parent.parent / CEILING for model in people})
    return [
        _with_intervals(line | {"readers": ", ".join(line["readers"])}, same=100, kappa=1, ac1=1)
        for file in files
        for line in _lines(file)
    ]


def _lines(file: Path) -> list[Record]:
    """Agreement rows of a file; none if it is missing or no export of a review."""
    try:
        rows = [parse_json(line) for line in read_text(file).splitlines()]
    except (OSError, ValueError):
        return []
    return [line for line in rows if isinstance(line, dict) and line.get("schema") == "human-agreement-1"]


def _with_intervals(record: Record, **scales: int) -> Record:
    """A record with columns for the ends of the intervals that some fields hold, times their scale."""
    flat = dict(record)
    for name, scale in scales.items():
        for suffix, end in _ENDS:
            number = record.get(name, {}).get(end)
            flat[name + suffix] = None if number is None else scale * number
    return flat


def audits(facts: Facts) -> list[Record]:
    """The replies of each model that a person read otherwise than the rules did."""
    return [_with_intervals(entry.model_dump(), misread=100, missed=100, shift=100) for entry in facts.audits]


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
    read = {row["arm_id"]: row for row in facts.analysis(SHARES) if row.get("arm_id")}
    return [{**read.get(arm.arm_id, {}), **arm_cells(facts, arm), "arm_id": arm.arm_id} for arm in facts.arms]


def fixed(facts: Facts) -> list[Record]:
    """What all arms share: data, questions, protocol, rules, and the digests that name them."""
    manifest, spec, release = facts.manifests[0], facts.specs[0], release_of(facts.manifests[0])
    resampled = "pictures" if spec.dataset.has_pictures else "patients"
    versions = dict.fromkeys(
        f"{each['cardiolens']} ({str(each['git_commit'] or 'installed')[:12]})" for each in facts.manifests
    )
    packages = dict.fromkeys(
        ", ".join(f"{package} {number}" for package, number in each["packages"].items())
        for each in facts.manifests
    )
    rows: list[tuple[str, object]] = [
        ("runs", ", ".join(part.root.name for part in facts.parts)),
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
        *(("CardioLens", "; ".join(versions)), ("packages", "; ".join(packages))),
    ]
    return [{"what": what, "value": value} for what, value in rows if value not in (None, False, 0)]
