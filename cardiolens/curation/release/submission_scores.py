"""The scores of a submission: its replies judged with the withheld answers, as a sweep judges."""

from collections import Counter
from datetime import UTC, datetime
from itertools import product

import pyarrow as pa

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.steps import StatisticsSpec
from cardiolens.curation.release.submission_file import NO_REPLY, Submission, read_submission
from cardiolens.curation.release.withheld_cohort import Answers, read_answers
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.report_text.entities import report_forms
from cardiolens.score.statistics.scores import Settings, score
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage.schemas import COMPLETIONS, PLANNED, REQUESTS

_AT = datetime(2000, 1, 1, tzinfo=UTC)  # there is one completion a request, so its time decides nothing
_COLUMNS = ("arm_id", "scope", "metric", "value", "low", "high", "n_items", "n_patients")


class Score(Spec):
    """Words of scoring."""

    score: GivenPath  # the submission
    answers: GivenPath  # the owner's file
    protocol: str | None = None  # the release's own folder of a protocol, where it has one


def score_submission(words: Score) -> int:
    """Print the scores of a submission as tab-separated lines, and return 0.

    InputError if it is not of the release of the answers, or not well-formed.
    """
    answers = read_answers(words.answers, words.protocol)
    submission = read_submission(words.score, answers.release, answers.questions)
    if submission.catalogue_sha256 != answers.catalogue.sha256:
        raise InputError(
            f"{words.score}: was asked in another version of the protocol; the sweep is to be run again with "
            "the version of CardioLens that the release names"
        )
    release = answers.release
    say(f"release: {release.name} {release.number} {release.sha256}")
    n_replies = Counter(arm for arm, _ in submission.replies)
    for arm in submission.arms:
        without = len(answers.questions) - n_replies[arm]
        say(f"{arm}: {n_replies[arm]} replies; {without} questions without one count as wrong")
    print(*_COLUMNS, sep="\t")
    for row in scores_of(verdicts_of(submission, answers), answers.catalogue).select(_COLUMNS).to_pylist():
        print(*row.values(), sep="\t")
    return 0


def verdicts_of(submission: Submission, answers: Answers) -> pa.Table:
    """Judge every question under every arm to table `verdicts`; one without a reply as if it was refused."""
    requests: list[dict[str, object]] = []
    completions: list[dict[str, object]] = []
    for arm, qa_id in product(submission.arms, answers.questions):
        reply = submission.replies.get((arm, qa_id), NO_REPLY)
        key = f"{arm} {qa_id}"
        asked: dict[str, object] = {"arm_id": arm, "qa_id": qa_id, "option_keys": reply.option_keys}
        requests.append(asked | {"status": PLANNED, "request_key": key})
        said: dict[str, object] = {
            "text": reply.text,
            "status": reply.status,
            "finish_reason": reply.finish_reason,
        }
        completions.append(said | {"request_key": key, "written_at": _AT})
    return judge(
        pa.Table.from_pylist(requests, schema=REQUESTS),
        pa.Table.from_pylist(completions, schema=COMPLETIONS),
        answers.table,
        answers.protocol,
    )


def scores_of(verdicts: pa.Table, catalogue: Catalogue) -> pa.Table:
    """Score verdicts with the options that a sweep has by default: single arms, as in table `scores`."""
    chosen = StatisticsSpec()
    settings = Settings(chosen.min_n, chosen.resamples, chosen.seed, report_forms(catalogue))
    return score(verdicts, (), settings).scores.whole()
