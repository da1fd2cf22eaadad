"""What to teach next: words that cost most drafts, and sentences that recur; shown only where asked for."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import one_line
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.group_words import with_words
from cardiolens.curation.questions.house_sentences import key_of, reword
from cardiolens.curation.questions.numbers import sex_of
from cardiolens.curation.questions.report_files import Report, read_reports
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.report_text.sections import sentence_at, sentences
from cardiolens.report_text.understanding import unknown_words

FEWEST_REPORTS = 3  # a word of fewer reports may be a name
_MOST_LINES = 100


@dataclass(slots=True)
class Unknown:
    """How many drafts a word costs, the reports that hold it, and a sentence of each."""

    drafts: int = 0
    reports: dict[str, str] = field(default_factory=dict)

    def may_be_name(self, word: str) -> bool:
        """Return whether a word may name somebody: it is rare, or has a capital within a sentence."""
        capital = re.compile(rf"(?<=[a-z,;:] ){re.escape(word.capitalize())}\b|\b(?:Dr|Prof|Mr|Mrs|Ms)\b\.? ")
        is_name = word.isalpha() and any(capital.search(sentence) for sentence in self.reports.values())
        return len(self.reports) < FEWEST_REPORTS or is_name


def count_unknown(spec: QuestionsSpec) -> int:
    """Print the words that cost most drafts; return 0."""
    if spec.reports is None or spec.studies is None:
        raise InputError("mode=unknown reads reports; add reports=... and studies=...")
    catalogue = with_words(load_catalogue(spec.protocol), spec.words)
    reports, _ = read_reports(spec.reports, spec.studies, spec.links)
    unknown = unknown_of(reports, catalogue)
    for line in _lines(unknown, with_text=spec.text):
        say(line)
    for line in _recurring(unread_sentences(reports, catalogue), with_text=spec.text):
        say(line)
    return 0


def unread_sentences(reports: list[Report], catalogue: Catalogue) -> Counter[str]:
    """Count the reports that hold a sentence which is not understood; `#` stands for its numbers."""
    counts: Counter[str] = Counter()
    for report in reports:
        reworded = reword(report.text, catalogue.house)
        spans = [
            reworded.source(sentence.start, sentence.end)
            for sentence in unknown_words(reworded.text, catalogue)
            if sentence.section != "silent" and not sentence.asks
        ]
        counts.update({key_of(report.text[start:end]) for start, end in spans})
    return counts


def _recurring(counts: Counter[str], *, with_text: bool) -> Iterator[str]:
    """Yield a line a sentence that several reports share and that is not understood, the commonest first."""
    shared = [(key, count) for key, count in counts.most_common() if count >= FEWEST_REPORTS and key]
    if shared and not with_text:
        yield (
            f"{len(shared)} sentences or headings recur in {FEWEST_REPORTS} reports and are not understood; "
            "text=true shows them"
        )
    for key, count in shared[:_MOST_LINES] if with_text else ():
        yield f"{count:6} reports: {one_line(key)}"


def unknown_of(reports: list[Report], catalogue: Catalogue) -> dict[str, Unknown]:
    """Return what each unknown word costs, the dearest first."""
    costs: dict[str, Unknown] = defaultdict(Unknown)
    for report in reports:
        for (_, word), sentence in _losses(report, catalogue).items():
            shown = "(a number)" if word[0].isdigit() else word
            costs[shown].drafts += 1
            costs[shown].reports.setdefault(report.report_id, sentence)
    return dict(sorted(costs.items(), key=lambda pair: (-pair[1].drafts, pair[0])))


def _losses(report: Report, catalogue: Catalogue) -> dict[tuple[str, str], str]:
    """Return the sentence of each draft and word that it was lost for."""
    statements = extract(report.text, sex_of(report.text, report.sex), catalogue)
    undetermined = settle(report.text, statements, catalogue).undetermined
    pieces = list(sentences(report.text))
    losses: dict[tuple[str, str], str] = {}
    for statement in statements:
        if statement.unknown and undetermined.get(statement.subtask) == Reason.UNKNOWN_WORD:
            sentence = sentence_at(pieces, statement.start)
            losses[statement.subtask, statement.unknown] = report.text[sentence.start : sentence.end].strip()
    return losses


def _lines(unknown: Mapping[str, Unknown], *, with_text: bool) -> Iterator[str]:
    """Yield a line a word; a word that may name somebody is only counted."""
    shown = {word: cost for word, cost in unknown.items() if with_text or not cost.may_be_name(word)}
    for word, cost in list(shown.items())[:_MOST_LINES]:
        yield f"{cost.drafts:6} drafts in {len(cost.reports):4} reports: {one_line(word)}"
        if with_text:
            yield f"       e.g. {one_line(next(iter(cost.reports.values())))}"
    hidden = Counter(cost.drafts for word, cost in unknown.items() if word not in shown)
    if hidden:
        yield (
            f"{hidden.total()} other words stand in fewer than {FEWEST_REPORTS} reports, or have a capital, "
            f"and may be names; they cost {sum(drafts * count for drafts, count in hidden.items())} drafts; "
            "text=true shows them, with sentences of the reports"
        )
    if not unknown:
        yield "no draft was lost for a word that is not known"
