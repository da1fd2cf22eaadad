"""Coverage of details: whether all that a report tells of a finding has the detail that is asked for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.curation.questions.extent import bare_place, places_named
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has, has_for, words
from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.report_text.sections import Sentence, sentence_at

_Place = tuple[int, int]  # of a clause


@dataclass(frozen=True)
class Coverage:
    """The statements of a report on one finding and its details."""

    text: str
    pieces: Sequence[Sentence]
    statements: Sequence[ReportStatement]
    finding: Sequence[ReportStatement]  # that the finding is there

    def lacks_clause(self, subtask: Subtask, stated: Sequence[ReportStatement]) -> bool:
        """Return whether one of several findings of a sentence is told without this detail.

        `basal septal LGE and inferior LGE` leaves open the level of the second.
        """
        detailed = {self._clause(statement) for statement in stated}
        sentences = {sentence_at(self.pieces, clause[0]) for clause in detailed}
        details: dict[_Place, list[ReportStatement]] = {}
        for detail in self._details(subtask):
            details.setdefault(self._clause(detail), []).append(detail)
        clauses = {(finding.start, finding.end) for finding in self.finding} | details.keys()
        if any(self._is_of_other_kind(clause) for clause in clauses - details.keys()):
            return True
        return any(
            self._is_own_finding(subtask, clause, details, detailed)
            for clause in clauses - detailed
            if sentence_at(self.pieces, clause[0]) in sentences
        )

    def _is_own_finding(
        self,
        subtask: Subtask,
        clause: _Place,
        details: Mapping[_Place, Sequence[ReportStatement]],
        detailed: Collection[_Place],
    ) -> bool:
        """Return whether a clause without a detail is of a finding of its own, which may have another one.

        It is not where one of both only begins what the other ends: `patchy mid-wall and subepicardial LGE`.
        """
        clause_details = details.get(clause, ())
        if not clause_details:
            return self._is_of_other_kind(clause)
        exempt = words()["wallless"] if subtask.id in words()["walls"] else words()["levelless"]
        places = {detail.value for detail in clause_details if detail.subtask in words()["places"]}
        if places and places <= {*exempt}:
            return False
        if any(has(words()["open_level"], self.text[slice(*part)]) for part in (clause, *detailed)):
            return False  # `in the basal` and `mid septum`
        first, second = sorted([clause, min(detailed)])
        return _has_place(details.get(first, ())) or (not _has_place(details.get(second, ())))

    def _is_of_other_kind(self, clause: _Place) -> bool:
        """Return whether a clause has a kind of its own: `walls thickened, the apex thinned`."""
        kinds = {finding.value for finding in self.finding if (finding.start, finding.end) == clause}
        other_kinds = {finding.value for finding in self.finding if (finding.start, finding.end) != clause}
        return bool(kinds and other_kinds) and kinds.isdisjoint(other_kinds)

    def is_concluded_otherwise(self, subtask: Subtask) -> bool:
        """Return whether a conclusion gives the finding a detail that no sentence before it has."""
        before: dict[str, set[str | None]] = {}
        behind: dict[str, set[str | None]] = {}
        for detail in self._details(subtask):
            concludes = sentence_at(self.pieces, detail.start).concludes
            (behind if concludes else before).setdefault(detail.subtask, set()).add(detail.value)
        return any(name in before and not values <= before[name] for name, values in behind.items())

    def has_unread_place(self, subtask: Subtask) -> bool:
        """Return whether a sentence that was not read puts more of the finding in a place."""
        places = {bare_place(statement.value) for statement in self._details(subtask) if statement.value}
        family = {subtask.parent, *words()["details"].get(subtask.parent, [])}
        details = {name for names in words()["details"].values() for name in names}
        read = self._sentences_of(family)
        read_otherwise = read | self._sentences_of(
            {statement.subtask for statement in self.statements} - details
        )
        anchored = {sentence_at(self.pieces, statement.start) for statement in self.finding}
        goes_on = False
        for sentence in self.pieces:
            goes_on = sentence in anchored or (goes_on and sentence not in read_otherwise)
            if sentence in read or sentence.section == "silent" or sentence.asks:
                continue
            phrase = self.text[sentence.start : sentence.end]
            is_of_finding = goes_on or has_for("unread", subtask.parent or "", phrase)
            is_denied = has(words()["unread_denial"], phrase)
            is_more = has(words()["unread_more"], phrase) or not places_named(phrase) <= places
            if is_of_finding and not is_denied and is_more:
                return True
        return False

    def points_back(self, subtask: Subtask) -> bool:
        """Return whether another sentence names places of the finding: `these segments are thinned`."""
        sentences = {sentence_at(self.pieces, finding.start) for finding in self.finding}
        return subtask.id in words()["places"] and any(
            has(words()["places_before"], self.text[sentence.start : sentence.end]) for sentence in sentences
        )

    def is_of_the_whole(self, subtask: Subtask) -> bool:
        """Return whether places are examples of the whole ventricle: `concentric, 17 mm in the septum`."""
        names = words()["of_the_whole"].get(subtask.parent)
        return names is not None and any(has(names, statement.quote) for statement in self.finding)

    def _sentences_of(self, subtasks: Collection[str]) -> set[Sentence]:
        return {
            sentence_at(self.pieces, statement.start)
            for statement in self.statements
            if statement.subtask in subtasks and not statement.measured
        }

    def _details(self, subtask: Subtask) -> list[ReportStatement]:
        family = words()["details"].get(subtask.parent, [])
        return [
            statement
            for statement in self.statements
            if statement.subtask in family and statement.certainty == "certain"
        ]

    def _clause(self, statement: ReportStatement) -> _Place:
        """Return the clause of the finding that a detail is told of: its own, or the last before it."""
        sentence = sentence_at(self.pieces, statement.start)
        clauses = sorted(
            (finding.start, finding.end)
            for finding in self.finding
            if sentence_at(self.pieces, finding.start) == sentence
        )
        before = [place for place in clauses if place[0] <= statement.start]
        return (before or clauses or [(statement.start, statement.end)])[-1 if before else 0]


def _has_place(details: Sequence[ReportStatement]) -> bool:
    """Return whether details name a level or a wall."""
    return any(detail.subtask in words()["places"] for detail in details)
