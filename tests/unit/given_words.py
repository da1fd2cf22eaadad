"""What commands do with words, read as the commands read them."""

from collections.abc import Sequence

from cardiolens.config.command_words import read_words
from cardiolens.curation.release import make, make_tasks
from cardiolens.curation.release.release_words import Release
from cardiolens.curation.review import audit, review_commands
from cardiolens.storage.places import RunWord


def release(words: Sequence[str]) -> int:
    return make.release(read_words(Release, words))


def tasks_of(words: Sequence[str]) -> int:
    return make_tasks.make_tasks(read_words(make_tasks.Harness, words))


def serve(words: Sequence[str]) -> int:
    return review_commands.serve(read_words(review_commands.Serve, words))


def export(words: Sequence[str]) -> int:
    return review_commands.export(read_words(review_commands.Export, words))


def audited(words: Sequence[str]) -> int:
    return audit.audit(read_words(audit.Audit, words))


def report_of(words: Sequence[str]) -> int:
    return audit.report(read_words(RunWord, words))
