"""Completeness: whether the extracted statements on a finding cover all that the report says about it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from cardiolens.curation.questions.detail_coverage import Coverage
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.extent import options_of_extent
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has, has_for, words
from cardiolens.curation.questions.unread_sentences import UnreadSentences
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.sections import Sentence, sentence_at, sentences


@dataclass
class Report:
    """A report, the statements that one extractor took from it, and its sentences."""

    text: str
    found: Sequence[ReportStatement]
    catalogue: Catalogue
    pieces: list[Sentence] = field(init=False)
    unread: UnreadSentences = field(init=False)

    def __post_init__(self) -> None:
        original, self.text = self.text, plain(self.text)
        self.pieces = list(sentences(self.text))
        self.unread = UnreadSentences(original, self.pieces, self.found, self.catalogue)

    def lacks(
        self, subtask: Subtask, statements: Sequence[ReportStatement], stated: Sequence[ReportStatement]
    ) -> str | None:
        """Why the statements of a subtask do not settle it; None where they do.

        `own` are its findings of today, certain or not; `stated` the certain ones that are words.
        """
        values = {
            statement.value for statement in stated if statement.value is not None and not statement.doubt
        }
        if self._is_unsure(statements, values, stated):
            return Reason.UNCERTAIN
        if subtask.id in words()["gates"] and (
            self._misses(subtask, values) or self._has_unread_sign(subtask, values)
        ):
            return Reason.CONTRADICTION
        if subtask.id == "L05" and any(
            has(words()["range_of_layers"], self._words(sentence)) for sentence in self._sentences_of(stated)
        ):
            return Reason.BETWEEN_GRADES
        return self._lacks_places(subtask, stated) if subtask.parent else None

    def lacks_parts(self, subtask: Subtask) -> bool:
        """Return whether a question asks about several structures and one of them is not mentioned."""
        certain = [
            statement
            for statement in self.found
            if statement.subtask == subtask.id and statement.certainty == "certain"
        ]
        quotes = [
            re.sub(words()["heading_of_valves"], "", statement.quote, flags=re.IGNORECASE)
            for statement in certain
        ]
        needed = words()["parts"].get(subtask.id, {})
        return not all(has(part, " ".join(quotes)) for part in needed.values())

    def denies_a_part(self, subtask: Subtask, stated: Sequence[ReportStatement]) -> bool:
        """Return whether one of several findings is denied in one statement and affirmed in another."""
        normal = {option.text for option in subtask.options if option.normal}
        return any(
            len({statement.value in normal for statement in stated if has(part, _bare(statement.quote))}) > 1
            for part in words()["one_state_each"].get(subtask.id, ())
        )

    def has_unread_part(self, subtask: Subtask) -> bool:
        """Return whether a sentence has a sign of one of several findings but yielded no statement."""
        read = self._sentences_of([statement for statement in self.found if statement.subtask == subtask.id])
        return any(
            has_for("unread_parts", subtask.id, self._words(sentence))
            for sentence in self.pieces
            if sentence not in read and sentence.section != "silent"
        )

    def tells_worse(self, subtask: Subtask, values: Sequence[str]) -> bool:
        """Return whether a worse grade of motion is named than those that were read."""
        texts = [option.text for option in subtask.options]
        worst = max(map(texts.index, values), default=0)
        return any(self._moves(sentence, texts[worst + 1 :]) for sentence in self.pieces)

    def has_unread_words(self, subtask: Subtask) -> bool:
        """Return whether a sentence mentions the quantity but yielded no statement: `LV fn N`."""
        read = self._sentences_of([statement for statement in self.found if statement.subtask == subtask.id])
        unread = [
            sentence for sentence in self.pieces if sentence not in read and sentence.section != "silent"
        ]
        return any(has_for("words_of_number", subtask.id, self._words(sentence)) for sentence in unread)

    def is_denied_unread(self, subtask: Subtask, values: Collection[str]) -> bool:
        """Return whether a sentence that was not read speaks of what a normal answer denies: `HFrEF`."""
        normal = {option.text for option in subtask.options if option.normal}
        read = self._sentences_of([statement for statement in self.found if statement.subtask == subtask.id])
        unread = [
            self._words(sentence)
            for sentence in self.pieces
            if sentence not in read and sentence.section != "silent" and not sentence.asks
        ]
        return (
            bool(values)
            and {*values} <= normal
            and any(
                has_for("unread_abnormal", subtask.id, phrase)
                and not has(words()["unread_denial"], phrase)
                and not has(words()["plan"], phrase)
                for phrase in unread
            )
        )

    def _moves(self, sentence: Sentence, grades: Collection[str]) -> bool:
        """Return whether a sentence about the current examination names one of these LV motion grades."""
        phrase = self._words(sentence)
        if sentence.section == "silent" or has(words()["right_heart"], phrase):
            return False
        patterns = [words()["motion"].get(grade) for grade in grades]
        return any(pattern and has(pattern, phrase) for pattern in patterns)

    def _words(self, sentence: Sentence) -> str:
        return self.text[sentence.start : sentence.end]

    def _sentences_of(self, statements: Sequence[ReportStatement]) -> set[Sentence]:
        return {sentence_at(self.pieces, statement.start) for statement in statements}

    def _is_unsure(
        self,
        statements: Sequence[ReportStatement],
        values: Collection[str | None],
        stated: Sequence[ReportStatement],
    ) -> bool:
        """Return whether a value is hedged and no other sentence states it, with a place, for certain."""
        placed_statements = [statement for statement in stated if has(words()["place"], statement.quote)]
        sure = {
            (sentence_at(self.pieces, statement.start), statement.value) for statement in placed_statements
        }
        elsewhere = {value for _, value in sure}
        return any(
            statement.value not in values
            or statement.value not in elsewhere
            or (sentence_at(self.pieces, statement.start), statement.value) in sure
            for statement in statements
            if statement.certainty == "uncertain"
        )

    def _misses(self, subtask: Subtask, values: Collection[str | None]) -> bool:
        """Return whether a statement of today was taken for a plan, and names what no other does."""
        for statement in self.found:
            if (
                statement.subtask == subtask.id
                and statement.certainty == "hypothetical"
                and statement.value not in values
            ):
                sentence = sentence_at(self.pieces, statement.start)
                phrase = self._words(sentence)
                asks = sentence.asks or sentence.section == "silent" or has(words()["plan"], phrase)
                if not asks and has_for("own_words", subtask.sequence, phrase):
                    return True
        return False

    def _has_unread_sign(self, subtask: Subtask, values: Collection[str | None]) -> bool:
        """Return whether a finding is stated to be absent but a sign of it appears: `T2+ inf wall`."""
        normal = {option.text for option in subtask.options if option.normal}
        spoken = [sentence for sentence in self.pieces if sentence.section != "silent" and not sentence.asks]
        return set(values) <= normal and any(
            has_for("sign", subtask.id, self._words(sentence)) for sentence in spoken
        )

    def _lacks_places(self, subtask: Subtask, stated: Sequence[ReportStatement]) -> str | None:
        """Why the places, patterns or layers of a finding are not told whole."""
        gate = [
            statement
            for statement in self.found
            if statement.subtask == subtask.parent and statement.certainty == "certain"
        ]
        anchored = self._sentences_of(
            [statement for statement in gate if statement.value is not None and not statement.doubt]
        )
        mine = self._sentences_of(stated)
        if subtask.tier == 1 and mine - anchored:
            return Reason.UNANCHORED
        if subtask.id not in words()["walls"] and any(
            has(words()["bracketed"], self._words(sentence)) for sentence in mine
        ):
            return Reason.UNANCHORED
        if reason := self._lacks_extent(subtask, stated, anchored) or self._lacks_coverage(
            subtask, stated, gate
        ):
            return reason
        is_unread = subtask.parent == "C06" and self._has_unread_motion()
        is_missed = self._misses(subtask, {statement.value for statement in stated})
        if is_unread or is_missed or self._detailed_elsewhere(subtask, mine):
            return Reason.INCOMPLETE_PLACES
        several = len({statement.value for statement in stated}) > 1 and len(mine) > 1
        return Reason.SEVERAL_VALUES if several and subtask.id in words()["kinds"] else None

    def _lacks_extent(
        self, subtask: Subtask, stated: Sequence[ReportStatement], anchored: Collection[Sentence]
    ) -> str | None:
        """Return why levels or walls are no list that was read whole."""
        if subtask.id not in words()["places"]:
            return None
        if any(self._has_open_range(subtask, sentence) for sentence in self._sentences_of(stated)):
            return Reason.RANGE_OF_PLACES
        return self._extent(subtask, stated, anchored)

    def _lacks_coverage(
        self, subtask: Subtask, stated: Sequence[ReportStatement], gate: Sequence[ReportStatement]
    ) -> str | None:
        """Return why the details that were read may be of a part of the finding, or of none of it."""
        present = [statement for statement in gate if statement.value is not None and not statement.doubt]
        coverage = Coverage(self.text, self.pieces, self.found, present)
        if coverage.is_concluded_otherwise(subtask):
            return Reason.CONTRADICTION
        is_partly_told = (
            coverage.lacks_clause(subtask, stated)
            or coverage.has_unread_place(subtask)
            or coverage.points_back(subtask)
            or (subtask.id in words()["places"] and coverage.is_of_the_whole(subtask))
        )
        return Reason.INCOMPLETE_PLACES if is_partly_told else None

    def _has_unread_motion(self) -> bool:
        """Return whether a sentence names a motion grade but yielded no statement: `AK segs 4, 7`."""
        read = self._sentences_of([statement for statement in self.found if statement.subtask == "C06"])
        return any(
            self._moves(sentence, words()["motion"]) for sentence in self.pieces if sentence not in read
        )

    def _has_open_range(self, subtask: Subtask, sentence: Sentence) -> bool:
        """Return whether places are given as a range, which may or may not include those in between."""
        phrase = self._words(sentence)
        if has(words()["open_range"], phrase):
            return True
        if subtask.id not in words()["levels"]:
            return has(words()["range_of_walls"], phrase)
        between = has(words()["range_of_levels"], phrase) and not has(words()["neighbours"], phrase)
        return between or has(words()["apical_or_apex"], phrase)

    def _detailed_elsewhere(self, subtask: Subtask, mine: Collection[Sentence]) -> bool:
        """Return whether another sentence details the same finding without answering this question."""
        family = words()["details"].get(subtask.parent, [])
        details = [
            statement
            for statement in self.found
            if statement.subtask in family and statement.certainty == "certain"
        ]
        elsewhere = self._sentences_of(details) - set(mine)
        return any(not has(words()["concluding"], self._words(sentence)) for sentence in elsewhere)

    def _extent(
        self, subtask: Subtask, stated: Sequence[ReportStatement], anchored: Collection[Sentence]
    ) -> str | None:
        """Why a list of places was not read whole; `anchored` are all sentences that tell the finding."""
        levels = subtask.id in words()["levels"]
        every = {statement.value for statement in stated}
        if any(
            not options_of_extent(self._words(sentence), subtask, levels=levels) <= every
            for sentence in anchored
        ):
            return Reason.INCOMPLETE_PLACES
        for sentence in self._sentences_of(stated):
            here = {
                statement.value
                for statement in stated
                if sentence_at(self.pieces, statement.start) == sentence
            }
            if not options_of_extent(self._words(sentence), subtask, levels=levels) <= here:
                return Reason.INCOMPLETE_PLACES
            if here != every and has(words()["exclusive"], self._words(sentence)):
                return Reason.CONTRADICTION
        return None


def _bare(quote: str) -> str:
    """A quote without a label that names all structures of a question: `Atria: LA enlarged`."""
    labels = f"{words()['label_of_all']}|{words()['heading_of_valves']}"
    return re.sub(labels, "", quote, flags=re.IGNORECASE)
