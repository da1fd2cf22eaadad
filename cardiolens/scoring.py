"""The last steps of the flow: completions of a run → verdicts → scores."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.judging.finals import duplicates, finals
from cardiolens.judging.verdicts import judge
from cardiolens.plan.requests import PLANNED
from cardiolens.spec import SweepSpec
from cardiolens.stats.scores import score
from cardiolens.store import Run, Store

_REQUEST_COLUMNS = ("arm_id", "qa_id", "option_keys", "status", "request_key")


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts and scores as written, and how the distinct planned requests ended."""

    verdicts: pa.Table
    scores: pa.Table
    ended: Mapping[str, int]  # ok, refused, engine_error, missing
    duplicates: Mapping[str, int]  # agreeing, disagreeing: final completions beyond the one that counts

    @property
    def unfinished(self) -> int:
        return self.ended["engine_error"] + self.ended["missing"]


def judge_and_score(run: Run, store: Store, model_keys: Mapping[str, str], spec: SweepSpec) -> Judged:
    """Write the verdicts and scores of a run anew from what its models said; no engine is touched."""
    statistics, protocol = spec.statistics, spec.dataset.protocol
    questions = tables.read(store.questions, tables.QUESTIONS)
    judged = []
    ended: Counter[str] = Counter()
    twice: Counter[str] = Counter()
    for model, model_key in model_keys.items():
        requests = tables.read(run.requests(model), tables.REQUESTS, _REQUEST_COLUMNS)
        completions = _of(requests, tables.read(store.completions(model_key), tables.COMPLETIONS))
        asked = questions.filter(pc.is_in(questions["qa_id"], pc.unique(requests["qa_id"])))
        judged.append(judge(requests, completions, asked, protocol))
        ended += _ended(requests, completions)
        found = duplicates(completions)
        twice += Counter(agreeing=found.agreeing, disagreeing=found.disagreeing)
    verdicts = tables.concat(judged, tables.VERDICTS)
    scores = score(verdicts, statistics.min_n, statistics.resamples, statistics.seed)
    tables.replace(run.verdicts, verdicts, tables.VERDICTS)
    tables.replace(run.scores, scores, tables.SCORES)
    return Judged(verdicts, scores, ended, twice)


def _of(requests: pa.Table, completions: pa.Table) -> pa.Table:
    """The completions of a run's own requests; the store also holds those of other sweeps."""
    return completions.filter(pc.is_in(completions["request_key"], pc.unique(requests["request_key"])))


def _ended(requests: pa.Table, completions: pa.Table) -> Counter[str]:
    """How each distinct planned request ended."""
    planned = pc.unique(requests.filter(pc.equal(requests["status"], PLANNED))["request_key"])
    final = finals(completions)
    ended = Counter(final["status"].to_pylist())
    tried = len(pc.unique(completions["request_key"]))
    ended["engine_error"] = tried - final.num_rows
    ended["missing"] = len(planned) - tried
    return ended
