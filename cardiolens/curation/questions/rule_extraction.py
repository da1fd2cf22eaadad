"""Extraction by rules: the report reader of scoring, made stricter, plus numbers and diagnoses."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cardiolens.curation.questions.amendments import amended_subtasks
from cardiolens.curation.questions.diagnosis import diagnoses
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.house_sentences import Reworded, reword
from cardiolens.curation.questions.numbers import measured
from cardiolens.curation.questions.statement import Reading, ReportStatement
from cardiolens.curation.questions.statement_subject import doubt_of_subject, heading_of
from cardiolens.curation.questions.strict_patterns import first_match, has, has_for, words
from cardiolens.curation.questions.uncertainty import doubt_of
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.report_text.findings import Finding, findings
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.sections import Sentence, sentence_at, sentences
from cardiolens.report_text.understanding import unknown_words, vocabulary


def extract(text: str, sex: str | None, catalogue: Catalogue) -> list[ReportStatement]:
    """Extract the statements of a report, each checked against the text."""
    reworded = reword(text, catalogue.house)
    statements = _extract(reworded.text, sex, catalogue)
    if not reworded.stretches:
        return statements
    return [_in_report(statement, text, reworded) for statement in statements]


def _in_report(statement: ReportStatement, text: str, reworded: Reworded) -> ReportStatement:
    """Return a statement with its place and words in the report, and what it was read of."""
    start, end = reworded.source(statement.start, statement.end)
    reading = Reading(statement.start, statement.quote)
    return replace(statement, start=start, end=end, quote=text[start:end], reading=reading).check(text)


def _extract(text: str, sex: str | None, catalogue: Catalogue) -> list[ReportStatement]:
    """Extract the statements of a report that is in words of ours."""
    words_only = plain(without_names(text))
    pieces = list(sentences(words_only))
    statements = [*_stated(words_only, pieces, catalogue), *_measured(words_only, pieces, sex, catalogue)]
    statements += diagnoses(words_only, pieces, catalogue)
    checks = _Checks(words_only, pieces, catalogue)
    checked = [
        checks.checked(replace(statement, quote=text[statement.start : statement.end])).check(text)
        for statement in statements
    ]
    return [statement for statement in checked if not _is_told_by_its_line(statement, checked)]


def _is_told_by_its_line(joined: ReportStatement, others: Sequence[ReportStatement]) -> bool:
    """Return whether a statement was joined with the line below it, and says the same without it."""
    if joined.doubt != Reason.UNANCHORED or "\n" not in joined.quote:
        return False
    line_end = joined.start + joined.quote.index("\n")
    return any(
        (other.subtask, other.value, other.polarity) == (joined.subtask, joined.value, joined.polarity)
        and (other.doubt, other.certainty) == (None, "certain")
        and joined.start <= other.start < other.end <= line_end
        for other in others
    )


class _Checks:
    """What keeps a statement from being drafted, whatever it says."""

    def __init__(self, text: str, pieces: Sequence[Sentence], catalogue: Catalogue) -> None:
        self.text = text
        self.pieces = pieces
        self.catalogue = catalogue
        self.unknown = unknown_words(text, catalogue)
        self.amended = amended_subtasks(text, catalogue)

    def checked(self, statement: ReportStatement) -> ReportStatement:
        """Return a statement; in doubt if something beside its own words speaks against it."""
        doubt, unknown = self._doubt(statement)
        return statement if doubt is None else replace(statement, doubt=doubt, unknown=unknown)

    def _doubt(self, statement: ReportStatement) -> tuple[Reason | None, str | None]:
        """Return why a statement that is certain by its own words is none, and the word that is to blame."""
        sequence = self.catalogue[statement.subtask].sequence
        sentence = sentence_at(self.pieces, statement.start)
        if statement.subtask in self.amended:
            return Reason.AMENDED, None
        if statement.certainty != "certain":
            return None, None
        number = self._number(sequence, sentence) or self._condition(statement.subtask, sequence, sentence)
        if unknown := self.unknown.get(sentence) or number:
            return Reason.UNKNOWN_WORD, unknown
        roles, whole = vocabulary(self.catalogue), (self.text, sentence.start, sentence.end)
        is_of_organ = statement.measured and roles.names_other_organ(statement.quote, 0, len(statement.quote))
        if is_of_organ or (sequence != "cine" and roles.names_other_organ(*whole)):
            return Reason.OTHER_STRUCTURE, None
        is_shared = statement.subtask not in words()["places"] or roles.shares_places(*whole)
        kinds = frozenset(words()["kinds_of_places"].get(statement.subtask, ()))
        is_between = roles.stands_between_walls(self.text, statement.start, statement.end, kinds)
        span, around = (statement.start, statement.end), (sentence.start, sentence.end)
        is_of_another = statement.subtask in words()["patterns"] and roles.is_nearer_to_another(
            self.text, span, around, kinds, is_t2=sequence == "t2"
        )
        if not is_shared or is_between or is_of_another or self._is_joined_with_another(statement):
            return Reason.UNANCHORED, None
        is_named = self._is_named_only(statement, sentence) or self._may_not_be_taken(statement, sentence)
        return (Reason.NAMED_ONLY, None) if is_named else (None, None)

    def _may_not_be_taken(self, statement: ReportStatement, sentence: Sentence) -> bool:
        """Return whether `no LGE` may say that no images were taken: `stopped after cines. No LGE`."""
        own = re.split(r"[,;]", self.text[statement.start : sentence.end])
        clause = next((part for part in own if part.strip()), "")
        phrase = f"{self.text[sentence.start : statement.start]}{clause}"
        is_bare = has_for("no_images", statement.subtask, statement.quote) or has_for(
            "no_images", statement.subtask, phrase
        )
        return is_bare and has(words()["not_taken"], self.text)

    def _is_joined_with_another(self, statement: ReportStatement) -> bool:
        """Return whether a heading was joined with what the line below says of something else."""
        head, _, behind = self.text[statement.start : statement.end].rpartition("\n")
        names = vocabulary(self.catalogue).names_finding(behind, 0, len(behind))
        return head.endswith("\n") or (bool(head) and names)

    def _is_named_only(self, statement: ReportStatement, sentence: Sentence) -> bool:
        """Return whether a finding is named, and nothing is said of it."""
        roles, whole = vocabulary(self.catalogue), (self.text, sentence.start, sentence.end)
        normal = {option.text for option in self.catalogue[statement.subtask].options if option.normal}
        is_affirmed = statement.polarity == "affirmed" and statement.value not in normal
        is_bare = is_affirmed and roles.names_only(self.text, statement.start, statement.end)
        if statement.subtask in words()["listed"]:
            return is_affirmed and roles.names_only(*whole) and not roles.has_verb(*whole)
        if statement.subtask not in words()["named"]:
            return False
        return (is_bare and not roles.interprets(*whole)) or has(words()["quality"], statement.quote)

    def _condition(self, subtask: str, sequence: str, sentence: Sentence) -> str | None:
        """Return a word of a sentence that tells of another state of the heart: `LVEF at stress`."""
        phrase = self.text[sentence.start : sentence.end]
        patterns = [words()["conditions"].get(kind) for kind in (subtask, sequence)]
        return next(
            (match[0] for pattern in patterns if pattern and (match := first_match(pattern, phrase))), None
        )

    def _number(self, sequence: str, sentence: Sentence) -> str | None:
        """Return a number in a sentence on a sequence that is read by words alone: `LGE score 0/17`."""
        if sequence in ("cine", "multi"):
            return None
        phrase = re.sub(
            words()["numbers_of_places"], " ", self.text[sentence.start : sentence.end], flags=re.IGNORECASE
        )
        number = re.search(r"\d[\d.,]*", phrase)
        return number[0] if number else None


def without_names(text: str) -> str:
    """Blank out titles of persons and the modality (`MR`), which look like mitral regurgitation."""
    return re.sub(words()["names"], lambda match: " " * len(match[0]), text)


def _stated(text: str, pieces: Sequence[Sentence], catalogue: Catalogue) -> Iterator[ReportStatement]:
    for subtask_of, sequence in _fields(catalogue):
        for finding in findings(text, catalogue.lexicons[sequence]):
            subtask = subtask_of.get(finding.field)
            if subtask is None or finding.measured or _is_heading(finding):
                continue
            sentence = sentence_at(pieces, finding.start)
            phrase = text[sentence.start : sentence.end]
            if not _is_own(subtask.sequence, sentence, phrase, text):
                continue
            if finding.quote.strip() == phrase.strip() and _is_known_heading(phrase):
                continue
            statement = ReportStatement(
                subtask.id, finding.value, finding.start, finding.end, finding.quote, finding.section,
                finding.polarity,
                _certainty(finding, phrase), "rules",
            )  # fmt: skip
            doubt = doubt_of(statement, subtask, phrase) or doubt_of_subject(
                statement, finding, sentence, text, catalogue
            )
            yield replace(statement, doubt=doubt)


def _measured(
    text: str, pieces: list[Sentence], sex: str | None, catalogue: Catalogue
) -> Iterator[ReportStatement]:
    """Yield measurements; one followed by a mention of another or earlier examination is historical."""
    for statement in measured(text, pieces, sex):
        rest = text[statement.end : sentence_at(pieces, statement.start).end]
        clause = re.split(r"[,;]", rest)[0]
        past = has(words()["elsewhere"], rest) or has(words()["over"], clause)
        if _is_graded_otherwise(statement, rest, catalogue):
            yield replace(statement, doubt=Reason.NUMBER_AGAINST_WORDS)
        else:
            yield replace(statement, certainty="historical") if past else statement


def _is_graded_otherwise(statement: ReportStatement, rest: str, catalogue: Catalogue) -> bool:
    """Return whether the words right behind a number give it another grade: `LVEF 35 %, normal`."""
    behind = re.match(r"[\s,;(–-]*(?P<first>[a-z]+)(?P<further>[^,;]*)", rest, re.IGNORECASE)
    subtask = catalogue[statement.subtask]
    value = next((option for option in subtask.options if option.text == statement.value), None)
    if behind is None or value is None:
        return False
    if has(r"^(normal|preserved)\b", behind["first"]):
        return not value.normal
    allowed = {
        key
        for grade, keys in words()["means"].items()
        if statement.subtask in keys and has(rf"^(?:{grade})", behind["first"])
        for key in keys[statement.subtask]
    }
    return bool(allowed) and value.key not in allowed


def _certainty(finding: Finding, sentence: str) -> str:
    """Return the certainty of a finding; lower if its sentence is about the past or another examination."""
    if finding.certainty != "certain":
        return finding.certainty
    if has(words()["over"], sentence) and not has(words()["lasting"], sentence):
        return "historical"
    if has(words()["elsewhere"], sentence):
        return "historical"
    return "uncertain" if has(words()["hedge"], finding.quote) else "certain"


def _is_own(sequence: str, sentence: Sentence, phrase: str, text: str) -> bool:
    """Return whether a sentence is about a sequence, judged by its words, heading and section."""
    techniques = [pattern for pattern in words()["techniques"] if has(pattern, phrase)]
    if len(techniques) > 2 or (len(techniques) > 1 and has(words()["acquired"], phrase)):
        return False
    if has_for("other_words", sequence, phrase) and not has_for("named_itself", sequence, phrase):
        return False
    pattern = words()["own_words"].get(sequence)
    above = heading_of(sentence, text)
    return pattern is None or sentence.section == sequence or has(pattern, f"{above} {phrase}")


def _fields(catalogue: Catalogue) -> Iterator[tuple[dict[str, Subtask], str]]:
    for sequence in catalogue.lexicons:
        subtask_of = {
            subtask.field: subtask for subtask in catalogue.subtasks.values() if subtask.sequence == sequence
        }
        yield subtask_of, sequence


def _is_known_heading(phrase: str) -> bool:
    """Return whether a line is nothing but the heading of a section: `LGE`."""
    return tuple(re.findall(r"[^\W_]+", phrase.lower())) in grammar().headings


def _is_heading(finding: Finding) -> bool:
    """Return whether a finding consists only of a section heading: `LGE:`."""
    return finding.quote.rstrip().endswith(":") and len(finding.quote.split()) <= 4
