"""Findings of a report's text, each with its evidence (protocol 3.2; protocol 9, stage 2)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cardiolens.protocol.tasks.lexicon import Lexicon
from cardiolens.report_text.clauses import Clause, clauses
from cardiolens.report_text.finding_places import bears, placed_statements, values
from cardiolens.report_text.mentions import Reader, reader
from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.sections import Sentence, sentences
from cardiolens.report_text.statements import Reading, Statement, wholes

CERTAIN = "certain"


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement on a report field with its evidence; `value` is None if it matches no option."""

    field: str
    value: str | None
    start: int
    end: int
    quote: str  # text[start:end]
    polarity: str  # "affirmed" or "negated"
    certainty: str  # "certain", "uncertain", "historical" or "hypothetical"
    section: str
    measured: bool  # whether a number gives the value
    is_assumed: bool = False  # whether no word names the structure that it is of


def findings(text: str, lexicon: Lexicon) -> list[Finding]:
    """Return the findings of a text on one sequence, in the order of its sentences."""
    original, text = text, plain(text)
    results: list[Finding] = []
    last: Statement | None = None
    for sentence in sentences(text, lexicon.headings):
        last = None if sentence.opens else last
        if sentence.section in ("any", lexicon.sequence):
            reading = _read(text, sentence, reader(lexicon))
            results += _found(text, sentence, reading, last)
            last = next(
                (
                    statement
                    for statement in reversed(reading.made)
                    if bears(statement, lexicon) and statement.abnormal
                ),
                last,
            )
    return [replace(finding, quote=original[finding.start : finding.end]) for finding in results]


def asserted(finding_list: list[Finding]) -> Iterator[Finding]:
    """Yield the certain findings with an option."""
    return (finding for finding in finding_list if finding.value is not None and finding.certainty == CERTAIN)


def _read(text: str, sentence: Sentence, words: Reader) -> Reading:
    above = sentence.topic
    topic = words.mentions(text, above.start, above.end) if above else []
    sentence_mentions = words.mentions(text, sentence.start, sentence.end)
    kinds, of_topic = ({mention.kind for mention in side} for side in (sentence_mentions, topic))
    # "Wall motion" in one line and "normal" in the next are one statement; "LA dilated", "RA normal" are two.
    are_two = not of_topic.isdisjoint(("predicate", "state")) and {"structure", "predicate"} <= kinds
    joined = above and above.alone and not are_two and kinds.isdisjoint(("name", "state"))
    parts = clauses([*topic, *sentence_mentions] if joined else sentence_mentions)
    # `RV normal size` above `No RWMA` is a statement of its own, and no heading.
    is_heading = of_topic.isdisjoint(("predicate", "measure"))
    structures = [mention.names for mention in topic if mention.kind == "structure" and is_heading]
    if sentence.part and not structures:
        of_part = words.mentions(text, sentence.part.start, sentence.part.end)
        structures = [mention.names for mention in of_part if mention.kind == "structure"]
    return Reading.of(parts, structures, words.lexicon)


def _found(text: str, sentence: Sentence, reading: Reading, last: Statement | None) -> Iterator[Finding]:
    parts = reading.clauses
    for statement in reading.made:
        if statement.value is not None or statement.abnormal:
            clause = parts[statement.clause]
            yield _of(statement, text, sentence, clause, field=statement.scale.field, value=statement.value)
    for number, field, value, certainty in wholes(reading):
        yield _finding(text, sentence, parts[number], field, value, certainty=certainty)
    for field, value, place in values(placed_statements(reading, last), reading.lexicon):
        yield _of(place.statement, text, sentence, parts[place.clause], field=field, value=value)


def _finding(
    text: str, sentence: Sentence, clause: Clause, field: str, value: str | None, *, certainty: str
) -> Finding:
    """Return an affirmed finding with a clause as its evidence."""
    start, end = clause.span
    certainty = "hypothetical" if sentence.asks else certainty
    quote = text[start:end]
    return Finding(field, value, start, end, quote, "affirmed", certainty, sentence.section, measured=False)


def _of(
    statement: Statement, text: str, sentence: Sentence, clause: Clause, *, field: str, value: str | None
) -> Finding:
    return replace(
        _finding(text, sentence, clause, field, value, certainty=statement.certainty),
        polarity="negated" if statement.negated else "affirmed",
        measured=statement.said.measure is not None,
        is_assumed=statement.is_assumed,
    )
