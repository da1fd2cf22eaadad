"""Findings of a report's text, each with the words that state it (protocol 3.2; protocol 9, stage 2)."""

from collections.abc import Iterator
from dataclasses import dataclass

from cardiolens.judging.text.clauses import Clause, clauses
from cardiolens.judging.text.mentions import Reader, reader
from cardiolens.judging.text.places import bears, placed, values
from cardiolens.judging.text.sections import Sentence, sentences
from cardiolens.judging.text.statements import Statement, statements, wholes
from cardiolens.judging.text.subjects import Names
from cardiolens.tasks.lexicon import Lexicon

CERTAIN = "certain"


@dataclass(frozen=True, slots=True)
class Finding:
    """What some words of a text say of a report field; `value` is None where they tell no option of it."""

    field: str
    value: str | None
    start: int
    end: int
    quote: str  # text[start:end]
    polarity: str  # "affirmed" or "negated"
    certainty: str  # "certain", "uncertain", "historical" or "hypothetical"
    section: str
    measured: bool = False  # whether a number tells the value


def findings(text: str, lexicon: Lexicon) -> list[Finding]:
    """Every finding of a text on one sequence, in the order of its sentences."""
    found: list[Finding] = []
    last: Statement | None = None
    for sentence in sentences(text):
        if sentence.section in ("any", lexicon.sequence):
            read, last = _read(text, sentence, last, reader(lexicon))
            found += read
    return found


def _read(
    text: str, sentence: Sentence, last: Statement | None, words: Reader
) -> tuple[list[Finding], Statement | None]:
    """The findings of a sentence, and the last statement so far that places may belong to."""
    lexicon = words.lexicon
    topic = words.mentions(text, *sentence.topic) if sentence.topic else []
    topics: list[Names] = [one.names for one in topic if one.kind == "structure"]
    own = words.mentions(text, sentence.start, sentence.end)
    # "Wall motion" in one line and "normal" in the next are one statement
    alone = not any(one.kind in ("name", "state") for one in own)
    parts = clauses([*topic, *own] if alone else own)
    made = list(statements(parts, topics, lexicon))
    found = [
        _finding(text, sentence, parts[one.clause], one.scale.field, one.value, one)
        for one in made
        if one.value is not None or one.abnormal
    ]
    for number, field, value, meant in wholes(parts, topics, lexicon):
        start, end = parts[number].span
        found.append(
            Finding(field, value, start, end, text[start:end], "negated", meant, sentence.section)
        )
    for field, value, one in values(placed(parts, made, last, lexicon), lexicon):
        found.append(_finding(text, sentence, parts[one.clause], field, value, one.statement))
    bearing: list[Statement | None] = [one for one in made if bears(one, lexicon) and one.abnormal]
    return found, (bearing or [last])[-1]


def _finding(
    text: str, sentence: Sentence, clause: Clause, field: str, value: str | None, one: Statement
) -> Finding:
    start, end = clause.span
    return Finding(
        field=field,
        value=value,
        start=start,
        end=end,
        quote=text[start:end],
        polarity="negated" if one.negated else "affirmed",
        certainty="hypothetical" if sentence.asks else one.certainty,
        section=sentence.section,
        measured=one.said.measure is not None,
    )


def asserted(found: list[Finding]) -> Iterator[Finding]:
    """The findings that say an option for certain."""
    return (one for one in found if one.value is not None and one.certainty == CERTAIN)
