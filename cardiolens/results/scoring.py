"""The last steps of the flow: completions of a run → verdicts → scores → analyses."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.config.arms import Arm, arms
from cardiolens.config.sweep import SweepSpec
from cardiolens.digest import digest_of
from cardiolens.errors import InputError
from cardiolens.findings.analysis import Analysis
from cardiolens.findings.declared import Declared
from cardiolens.judging.entities import report_forms
from cardiolens.judging.finals import duplicates, finals
from cardiolens.judging.text_metrics import open_text_metrics
from cardiolens.judging.verdicts import judge
from cardiolens.record.chain import read_chains, walk
from cardiolens.record.places import Run, Store
from cardiolens.record.seen import seen_table
from cardiolens.record.spool import Spool
from cardiolens.results.analyses import analyses_of, write_analyses
from cardiolens.results.groups import Groups, groups_of
from cardiolens.results.stages import StageCounts, count_stages
from cardiolens.stats.asked import Asked
from cardiolens.stats.confidence import confidence_scores
from cardiolens.stats.factors import ArmFactors, beside_control, families
from cardiolens.stats.headlines import headlines
from cardiolens.stats.positions import order_scores, position_scores
from cardiolens.stats.scores import scored
from cardiolens.stats.verdicts import Verdicts
from cardiolens.tables import PLANNED
from cardiolens.tasks.catalogue import load_catalogue

_REQUEST_COLUMNS = ("arm_id", "qa_id", "option_keys", "status", "request_key")


@dataclass(frozen=True, slots=True)
class Replies:
    """The verdicts of a run, and the counts of its distinct planned requests by ending."""

    judged: Verdicts
    beside: pa.Table  # scores that need requests or completions as well
    questions_digest: str
    seen: pa.Table  # what chains showed their readers
    counts: Mapping[str, int]  # ok, refused, engine_error, missing; completions beyond: agreeing, ...
    stages: Mapping[str, tuple[StageCounts, ...]] = field(default_factory=dict)  # of chains, by model

    @property
    def verdicts(self) -> pa.Table:
        """All verdicts in memory."""
        return self.judged.whole()

    @property
    def unfinished(self) -> int:
        return self.counts["engine_error"] + self.counts["missing"]

    @property
    def duplicates(self) -> dict[str, int]:
        """Final completions beyond the one that counts, by whether they say the same."""
        return {name: self.counts[name] for name in ("agreeing", "disagreeing")}

    @property
    def unrequested(self) -> int:
        """Completions in the store that no request of this run has: kept, and ignored."""
        return self.counts["unrequested"]


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results that were written from the replies of a run."""

    replies: Replies
    spool: Spool  # of scores
    analyses: Sequence[Analysis]

    @property
    def scores(self) -> pa.Table:
        """All scores in memory."""
        return self.spool.whole()

    @property
    def of_tiers(self) -> pa.Table:
        """The primary scores of single arms on tiers."""
        return tables.concat(map(of_tiers, self.spool.parts()), tables.SCORES)


def judge_and_write(run: Run, store: Store, model_keys: Mapping[str, str], spec: SweepSpec) -> RunResults:
    """Write verdicts, scores and analyses of a run anew from its completions; no engine is touched."""
    replies = judge_replies(run, store, model_keys, spec)
    groups = groups_of(store.root, replies.judged)
    return write_results(run, replies, groups, arms(spec), spec)


def of_tiers(scores: pa.Table) -> pa.Table:
    """The rows of a table of scores that are primary scores of single arms on tiers."""
    single = pc.and_(pc.is_null(scores["versus_arm_id"]), pc.equal(scores["metric"], "primary"))
    return scores.filter(pc.and_(single, pc.starts_with(scores["scope"], "tier:")))


def judge_replies(
    run: Run,
    store: Store,
    model_keys: Mapping[str, str],
    spec: SweepSpec,
    questions_digest: str | None = None,
) -> Replies:
    """The verdicts of a run, a model at a time; InputError if its questions are not those of
    `questions_digest`.
    """
    questions = tables.read(store.questions, tables.QUESTIONS)
    asked = {model: _questions_asked(run, model) for model in model_keys}
    qa_ids = pc.unique(pa.concat_arrays(asked.values())) if asked else pa.array([], pa.string())
    questions = questions.filter(pc.is_in(questions["qa_id"], qa_ids))
    _check_subtasks(questions, spec.dataset.protocol)
    digest = digest_of(questions.sort_by("qa_id").to_pylist())
    if questions_digest not in (None, digest):
        raise InputError(
            f"{store.questions}: the questions of {run.root} have changed since it was judged; put the "
            "questions file of the run back and plan it again (mode=plan), or run the sweep again"
        )
    metrics = open_text_metrics(spec.statistics)
    judged, beside, seen = Verdicts(), [], []
    ended: Counter[str] = Counter()
    stages: dict[str, tuple[StageCounts, ...]] = {}
    for model, model_key in model_keys.items():
        requests = tables.read(run.requests(model), tables.REQUESTS, _REQUEST_COLUMNS)
        said = tables.read(store.completions(model_key), tables.COMPLETIONS)
        completions = _of(requests, said)
        own = questions.filter(pc.is_in(questions["qa_id"], asked[model]))
        verdicts = judge(requests, completions, own, spec.dataset.protocol, metrics)
        judged.add(verdicts)
        beside += _beside(verdicts, requests, finals(completions), spec)
        ended += _ended(requests, completions)
        twice = duplicates(completions)
        ended += Counter(agreeing=twice.agreeing, disagreeing=twice.disagreeing)
        chains = read_chains(run.requests(model))
        steps = walk(chains, store.completions(model_key))
        own_steps = pa.array(sorted({step.request_key for step in steps}), pa.string())
        of_steps = said["request_key"].filter(pc.is_in(said["request_key"], own_steps))
        ended["unrequested"] += said.num_rows - completions.num_rows - len(of_steps)
        stages[model] = count_stages(steps, _times_asked(requests, chains), set(of_steps.to_pylist()))
        seen.append(seen_table(chains, steps))
    shown = tables.concat(seen, tables.SEEN)
    return Replies(judged, tables.concat(beside, tables.SCORES), digest, shown, ended, stages)


def _questions_asked(run: Run, model: str) -> pa.Array:
    """The distinct questions of a model's requests; InputError where there is none."""
    found = pc.unique(tables.read(run.requests(model), tables.REQUESTS, ("qa_id",))["qa_id"])
    if not len(found):
        raise InputError(f"{run.requests(model)}: holds no requests; plan the run again (mode=plan)")
    return found


def _times_asked(requests: pa.Table, chains: Collection[str]) -> Counter[str]:
    """Rows of the plan by the key of the chain that they ask."""
    keys = requests["request_key"]
    return Counter(keys.filter(pc.is_in(keys, pa.array(list(chains), pa.string()))).to_pylist())


def _check_subtasks(questions: pa.Table, protocol: str) -> None:
    """Refuse questions on a subtask that the protocol does not have."""
    known = load_catalogue(protocol).subtasks
    strange = questions.filter(pc.invert(pc.is_in(questions["subtask"], pa.array(list(known)))))
    for row in strange.select(["qa_id", "subtask"]).slice(0, 1).to_pylist():
        raise InputError(
            f"question {row['qa_id']}: subtask {row['subtask']!r} is not in protocol {protocol!r}, which has "
            f"{', '.join(known)}; judge with the questions file of the run, or name its protocol in "
            "dataset.protocol"
        )


def _beside(verdicts: pa.Table, requests: pa.Table, completions: pa.Table, spec: SweepSpec) -> list[pa.Table]:
    """Scores that need more than verdicts: of option probabilities, and of the positions of moved options."""
    resampling = spec.statistics.resamples, spec.statistics.seed
    moved = [arm.arm_id for arm in arms(spec) if arm.control == "shuffled_options"]
    of_moved = verdicts.filter(pc.is_in(verdicts["arm_id"], pa.array(moved, pa.string())))
    judged = verdicts.filter(pc.equal(verdicts["status"], "judged"))
    having = pc.unique(judged["arm_id"]).to_pylist()
    turned = beside_control(_judged_arms(arms(spec), having), "reversed_options")
    return [
        confidence_scores(verdicts, requests, completions, *resampling),
        position_scores(of_moved, requests, *resampling),
        order_scores(verdicts, requests, turned, *resampling),
    ]


def write_results(
    run: Run, replies: Replies, groups: Groups, asked: Sequence[Arm], spec: SweepSpec
) -> RunResults:
    """Write verdicts, and the scores and analyses that follow from them."""
    answers = Asked.of(replies.judged)
    factors = _judged_arms(asked, answers.arms)
    forms = report_forms(load_catalogue(spec.dataset.protocol))
    options: dict[str, Any] = dict(spec.statistics.sampling)
    options |= {"gains": beside_control(factors, "blind"), "repeats": beside_control(factors, "repeat")}
    options |= {"headlines": headlines(factors), "forms": forms}
    options["simulated"] = {arm.arm_id for arm in factors if arm.simulated}
    scores = scored(answers, families=families(factors), **options)
    scores.add(replies.beside)
    declared = Declared(**spec.primary.model_dump()) if spec.primary else None
    given = answers, scores.parts(), factors, groups, spec.statistics
    analyses = analyses_of(*given, forms=forms, declared=declared)
    if replies.seen.num_rows or run.seen.exists():
        tables.replace(run.seen, replies.seen, tables.SEEN)
    tables.replace_by(run.verdicts, replies.judged.blocks(), tables.VERDICTS)
    tables.replace_by(run.scores, scores.parts(), tables.SCORES)
    write_analyses(run.analyses, analyses)
    return RunResults(replies, scores, analyses)


def _judged_arms(asked: Sequence[Arm], judged: Collection[str]) -> list[ArmFactors]:
    """The arms that can be compared: those with a judged item."""
    having = set(judged)
    return [arm for arm in varied(asked) if arm.arm_id in having]


def varied(asked: Sequence[Arm]) -> list[ArmFactors]:
    """Arms by what was varied."""
    return [
        ArmFactors(
            arm_id=arm.arm_id,
            model=arm.model.name,
            selector=arm.selector_name,
            budget=str(arm.budget),
            prompt=arm.prompt.name,
            control=arm.control,
            wording=str(arm.wording),
            simulated=arm.model.simulated,
        )
        for arm in asked
    ]


def _of(requests: pa.Table, completions: pa.Table) -> pa.Table:
    """The completions of a run's own requests; the store also holds those of other sweeps."""
    return completions.filter(pc.is_in(completions["request_key"], pc.unique(requests["request_key"])))


def _ended(requests: pa.Table, completions: pa.Table) -> Counter[str]:
    """Count distinct planned requests by how they ended: a final status, `engine_error` or `missing`."""
    planned = pc.unique(requests.filter(pc.equal(requests["status"], PLANNED))["request_key"])
    final = finals(completions)
    ended = Counter(final["status"].to_pylist())
    tried = len(pc.unique(completions["request_key"]))
    ended["engine_error"] = tried - final.num_rows
    ended["missing"] = len(planned) - tried
    return ended
