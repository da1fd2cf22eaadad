"""A finding in its report: why the statements of it may not be all that the report tells."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from cardiolens.curation.questions.extent import named
from cardiolens.curation.questions.reasons import Reason
from cardiolens.curation.questions.statement import Found
from cardiolens.curation.questions.strict_patterns import has, has_for, words
from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.report_text.sections import Sentence, sentence_at, sentences


@dataclass
class Report:
    """A report, its findings by one extractor, and its sentences."""

    text: str
    found: Sequence[Found]
    pieces: list[Sentence] = field(init=False)

    def __post_init__(self) -> None:
        self.pieces = list(sentences(self.text))

    def lacks(self, subtask: Subtask, own: Sequence[Found], stated: Sequence[Found]) -> str | None:
        """Why the statements of a subtask do not settle it; None where they do.

        `own` are its findings of today, certain or not; `stated` the certain ones that are words.
        """
        values = {one.value for one in stated if one.value is not None and not one.doubt}
        if self._is_unsure(own, values, stated):
            return Reason.UNCERTAIN
        if subtask.id in words()["gates"] and (
            self._misses(subtask, values) or self._has_unread_sign(subtask, values)
        ):
            return Reason.CONTRADICTION
        return self._lacks_places(subtask, stated) if subtask.parent else None

    def lacks_parts(self, subtask: Subtask) -> bool:
        """Return whether one of several structures of a question is not mentioned."""
        certain = [one for one in self.found if one.subtask == subtask.id and one.certainty == "certain"]
        quotes = [re.sub(words()["heading_of_valves"], "", one.quote, flags=re.IGNORECASE) for one in certain]
        needed = words()["parts"].get(subtask.id, {})
        return not all(has(part, " ".join(quotes)) for part in needed.values())

    def tells_worse(self, subtask: Subtask, kept: Sequence[str]) -> bool:
        """Return whether a worse grade of motion is named than those that were read."""
        texts = [option.text for option in subtask.options]
        worst = max(map(texts.index, kept), default=0)
        return any(self._moves(sentence, texts[worst + 1 :]) for sentence in self.pieces)

    def has_unread_words(self, subtask: Subtask) -> bool:
        """Return whether a sentence speaks of a quantity in words that gave no finding: `LV fn N`."""
        read = self._sentences_of([one for one in self.found if one.subtask == subtask.id])
        unread = [one for one in self.pieces if one not in read and one.section != "silent"]
        return any(has_for("words_of_number", subtask.id, self._words(one)) for one in unread)

    def _moves(self, sentence: Sentence, grades: Collection[str]) -> bool:
        """Return whether a sentence of today names one of these grades of motion of the left heart."""
        written = self._words(sentence)
        if sentence.section == "silent" or has(words()["right_heart"], written):
            return False
        patterns = [words()["motion"].get(grade) for grade in grades]
        return any(pattern and has(pattern, written) for pattern in patterns)

    def _words(self, sentence: Sentence) -> str:
        return self.text[sentence.start : sentence.end]

    def _sentences_of(self, found: Sequence[Found]) -> set[Sentence]:
        return {sentence_at(self.pieces, one.start) for one in found}

    def _is_unsure(
        self, own: Sequence[Found], values: Collection[str | None], stated: Sequence[Found]
    ) -> bool:
        """Return whether a value is hedged, and no other sentence tells it for certain with its place."""
        placed = [one for one in stated if has(words()["place"], one.quote)]
        sure = {(sentence_at(self.pieces, one.start), one.value) for one in placed}
        elsewhere = {value for _, value in sure}
        return any(
            one.value not in values
            or one.value not in elsewhere
            or (sentence_at(self.pieces, one.start), one.value) in sure
            for one in own
            if one.certainty == "uncertain"
        )

    def _misses(self, subtask: Subtask, values: Collection[str | None]) -> bool:
        """Return whether a statement of today was taken for a plan, and names what no other does."""
        for one in self.found:
            if one.subtask == subtask.id and one.certainty == "hypothetical" and one.value not in values:
                sentence = sentence_at(self.pieces, one.start)
                written = self._words(sentence)
                asks = sentence.asks or sentence.section == "silent" or has(words()["plan"], written)
                if not asks and has_for("own_words", subtask.sequence, written):
                    return True
        return False

    def _has_unread_sign(self, subtask: Subtask, values: Collection[str | None]) -> bool:
        """Return whether a finding that is told to be absent has its sign somewhere: `T2+ inf wall`."""
        normal = {option.text for option in subtask.options if option.normal}
        spoken = [one for one in self.pieces if one.section != "silent" and not one.asks]
        return set(values) <= normal and any(has_for("sign", subtask.id, self._words(one)) for one in spoken)

    def _lacks_places(self, subtask: Subtask, stated: Sequence[Found]) -> str | None:
        """Why the places, patterns or layers of a finding are not told whole."""
        gate = [one for one in self.found if one.subtask == subtask.parent and one.certainty == "certain"]
        anchored = self._sentences_of([one for one in gate if one.value is not None and not one.doubt])
        mine = self._sentences_of(stated)
        if subtask.tier == 1 and mine - anchored:
            return Reason.UNANCHORED
        if subtask.id in words()["places"]:
            if any(self._has_open_range(subtask, sentence) for sentence in mine):
                return Reason.RANGE_OF_PLACES
            if reason := self._extent(subtask, stated, anchored):
                return reason
        if subtask.parent == "C06" and self._has_unread_motion():
            return Reason.INCOMPLETE_PLACES
        if self._misses(subtask, {one.value for one in stated}) or self._detailed_elsewhere(subtask, mine):
            return Reason.INCOMPLETE_PLACES
        several = len({one.value for one in stated}) > 1 and len(mine) > 1
        return Reason.SEVERAL_VALUES if several and subtask.id in words()["kinds"] else None

    def _has_unread_motion(self) -> bool:
        """Return whether a sentence names a grade of motion and gave no finding: `AK segs 4, 7`."""
        read = self._sentences_of([one for one in self.found if one.subtask == "C06"])
        return any(
            self._moves(sentence, words()["motion"]) for sentence in self.pieces if sentence not in read
        )

    def _has_open_range(self, subtask: Subtask, sentence: Sentence) -> bool:
        """Return whether places are told from here to there, which may or may not hold what lies between."""
        written = self._words(sentence)
        if subtask.id not in words()["levels"]:
            return has(words()["range_of_walls"], written)
        between = has(words()["range_of_levels"], written) and not has(words()["neighbours"], written)
        return between or has(words()["apical_or_apex"], written)

    def _detailed_elsewhere(self, subtask: Subtask, mine: Collection[Sentence]) -> bool:
        """Return whether another sentence details the same finding and says nothing of this question."""
        family = words()["details"].get(subtask.parent, [])
        details = [one for one in self.found if one.subtask in family and one.certainty == "certain"]
        others = self._sentences_of(details) - set(mine)
        return any(not has(words()["concluding"], self._words(sentence)) for sentence in others)

    def _extent(
        self, subtask: Subtask, stated: Sequence[Found], anchored: Collection[Sentence]
    ) -> str | None:
        """Why a list of places was not read whole; `anchored` are all sentences that tell the finding."""
        levels = subtask.id in words()["levels"]
        every = {one.value for one in stated}
        if any(not named(self._words(sentence), subtask, levels=levels) <= every for sentence in anchored):
            return Reason.INCOMPLETE_PLACES
        for sentence in self._sentences_of(stated):
            here = {one.value for one in stated if sentence_at(self.pieces, one.start) == sentence}
            if not named(self._words(sentence), subtask, levels=levels) <= here:
                return Reason.INCOMPLETE_PLACES
            if here != every and has(words()["exclusive"], self._words(sentence)):
                return Reason.CONTRADICTION
        return None
