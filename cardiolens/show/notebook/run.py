"""A finished run as an object; `cardiolens.read_run` returns it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import nearest_first
from cardiolens.config.sweep import SweepSpec
from cardiolens.score.run_results.stored_replies import check_stored
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, Store

if TYPE_CHECKING:
    import altair as alt

_ANSWER = ("arm_id", "channel", "status", "parse_status", "parsed", "correct", "request_key")


@dataclass(frozen=True, slots=True)
class Answer:
    """One arm's reply and the answer parsed from it."""

    arm_id: str
    channel: str
    status: str
    parse_status: str | None
    parsed: list[str] | None
    correct: bool | None
    request_key: str
    reply: str | None


@dataclass(frozen=True, slots=True)
class Case:
    """One question of one study, without frames; Jupyter shows it as a table."""

    qa_id: str
    study_id: str
    question: str
    options: Mapping[str, str]
    truth: tuple[str, ...]  # keys of the options that are right
    answers: tuple[Answer, ...]

    def _repr_html_(self) -> str:
        from cardiolens.show.page.page_rendering import templates  # charts are slow to import

        return templates().get_template("case.html").render(case=self)


@dataclass(frozen=True)
class FinishedRun:
    """The tables, figures and cases of one run; each table is read on first access."""

    folder: Path
    given_store: Path | None = None  # where the store is now, if it was moved alone

    @cached_property
    def configuration(self) -> SweepSpec:
        """The resolved configuration of the run."""
        return documents.read_configuration(self._places)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest: models, arms, counts and costs."""
        return documents.read_manifest(self._places)

    @cached_property
    def scores(self) -> pa.Table:
        """Scores of arms and headlines, with their intervals."""
        return tables.read(self._places.scores, schemas.SCORES)

    @cached_property
    def comparisons(self) -> pa.Table:
        """Comparisons of arms, models and questions, one wide row each."""
        return tables.read(self._places.comparisons, schemas.COMPARISONS)

    @cached_property
    def verdicts(self) -> pa.Table:
        """One row per judged answer."""
        return tables.read(self._places.verdicts, schemas.VERDICTS)

    @cached_property
    def requests(self) -> pa.Table:
        """One row per question and arm, with the prompt and the names of its frames."""
        parts = (tables.read(self._places.requests(name), schemas.REQUESTS) for name in self.models)
        return pa.concat_tables(parts)

    @cached_property
    def questions(self) -> pa.Table:
        """The questions of the dataset, with their answers."""
        return tables.read(Store(self.configuration.store).questions, schemas.QUESTIONS)

    @cached_property
    def completions(self) -> pa.Table:
        """The final completion of each request that has one."""
        keys = pc.unique(self.requests["request_key"])
        store, parts = Store(self.configuration.store), []
        for model in self.manifest["models"].values():
            stored = tables.read(store.completions(model["model_key"]), schemas.COMPLETIONS)
            parts.append(finals(stored.filter(pc.is_in(stored["request_key"], value_set=keys))))
        return pa.concat_tables(parts)

    @property
    def models(self) -> tuple[str, ...]:
        """Model names in the order of the run."""
        return tuple(self.manifest["models"])

    def case(self, qa_id: str) -> Case:
        """One question with the answers of all arms; InputError if the run does not have it."""
        questions = self.questions.filter(pc.equal(self.questions["qa_id"], qa_id)).to_pylist()
        rows = self.verdicts.filter(pc.equal(self.verdicts["qa_id"], qa_id)).select(_ANSWER).to_pylist()
        if not questions or not rows:
            near = nearest_first(qa_id, sorted(set(self.verdicts["qa_id"].to_pylist())))[:5]
            raise InputError(f"{qa_id}: no such question in {self.folder}; e.g. {', '.join(near)}")
        keys = pa.array([row["request_key"] for row in rows], pa.string())
        replies = self.completions.filter(pc.is_in(self.completions["request_key"], value_set=keys))
        texts = dict(zip(replies["request_key"].to_pylist(), replies["text"].to_pylist(), strict=True))
        answers = tuple(Answer(**row, reply=texts.get(row["request_key"])) for row in rows)
        (question,) = questions
        options = {option["key"]: option["text"] for option in question["options"]}
        truth = tuple(question["answer"])
        return Case(qa_id, question["study_id"], question["question"], options, truth, answers)

    def cases(self) -> Iterator[Case]:
        """All questions of the run, in the order of their ids."""
        return map(self.case, sorted(set(self.verdicts["qa_id"].to_pylist())))

    def figure(self, metric: str = "primary", scope: str = "tier:1") -> "alt.LayerChart":
        """Values of single arms with 95 % intervals; InputError for a metric or scope without scores."""
        import altair as alt

        single = self.scores
        for name, value in (("metric", metric), ("scope", scope)):
            legal = sorted(set(single[name].to_pylist()))
            if value not in legal:
                raise InputError(f"{name} is {value!r}; the run has {', '.join(nearest_first(value, legal))}")
            single = single.filter(pc.equal(single[name], value))
        rows = [row for row in single.to_pylist() if math.isfinite(row["value"])]
        base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("arm_id:N", title=None, sort=None))
        title = f"{metric}, {scope} (percent, 95 % interval)"
        rules = base.mark_rule().encode(x=alt.X("low:Q", title=title), x2="high:Q")
        return alt.layer(rules, base.mark_point(filled=True).encode(x=alt.X("value:Q", title=title)))

    @property
    def _places(self) -> Run:
        return Run(self.folder, self.given_store)


def read_run(folder: str | Path, store: str | Path | None = None) -> FinishedRun:
    """Open a finished run by its folder; InputError if the folder is no finished run.

    `store`: where the store of the run is now, if it was moved without the run.
    """
    run = FinishedRun(Path(folder), None if store is None else Path(store))
    if not run.folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the path that a sweep's last line named")
    check_stored(Run(run.folder, run.given_store))
    return run
