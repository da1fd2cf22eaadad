"""Understanding: whether every word of a sentence has a role that the grammar knows, and which word has none.

What a sentence says that holds an unknown word is not known, whatever finding it names.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.lexicon import Tag
from cardiolens.protocol.tasks.phrases import Phrase
from cardiolens.report_text.assertion import MARKS
from cardiolens.report_text.clauses import Clause, clauses
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.layout import plain
from cardiolens.report_text.mentions import Mention, Reader, reader
from cardiolens.report_text.sections import Sentence, sentences
from cardiolens.report_text.tokens import tokens, unfolded

_DOUBTS = frozenset(
    ["uncertain", "uncertain_behind", "historical", "hypothetical", "technique", "exceptions", "sparing", "spared"]
)
_SAYING = frozenset(["place", "grade", "predicate", "verb", "negated", "negated_behind", "measure"])
_JOINTS = frozenset(["comma", "and", "with", "contrasts"])
# Words of phrases without meaning that yet turn, date or grade what their sentence says.
_STATING = (
    "name",
    "state",
    "predicate",
    "negated",
    "negated_behind",
    "measure",
    "grade",
    "lasting",
    "spared",
)
_VALUES = ("predicate", "negated_behind")
_TURNS = frozenset(
    ["no", "not", "nothing", "without", "previous", "prior", "last", "earlier", "older", "since", "than", "versus", "vs", "normal", "range"]
)
_RESTS = frozenset({"remaining", "the rest of", "the remainder of", "rest of the", "otherwise", "elsewhere"})
_HALF_SAID = frozenset({"has regressed", "have regressed"})  # less than before, and not absent
_DENIALS = frozenset({"negated", "negated_behind"})
_QUANTITIES = re.compile(
    r"(?:m[lL]|k?g|l|L)\s*/\s*(?:m\s?(?:2|²|\^2)?|min)\b|\bw/o?\b|\b(?:T2/STIR|rest/stress|stress/rest)\b"
)
_BOTH_DENIED = re.compile(r"\b(?:no|without)\s+[A-Za-z][\w \-]*\w/(?!no\b|yes\b)", re.IGNORECASE)
_OPTIONS = re.compile(r"(?<=\w)\s*[/|\\]\s*(?=\w)")
_BRACES = re.compile(r"[\[\]{}<>*_☐☒☑□?~\\|]|\.{3}|…|!|=>|→")
_ARROW = re.compile(r"\s*(?:[=-]+>|→|⇒)")  # before a conclusion
_IMAGES = re.compile(
    r"\b(?:scar|fibrosis|infarct(?:ion)?|necrosis)\s+(?:images?|sequences?)\b", re.IGNORECASE
)
_TWO_MEANINGS = frozenset({"ai"})  # aortic insufficiency, or who drew the contours
_QUALITY = re.compile(
    r"\b(?:images?|imaging|sequences?|study|scan)\b[^.;]{0,20}\b"
    r"(?:poor|limited|suboptimal|weak|low|reduced|impaired|restricted|good|adequate|satisfactory|excellent)\b",
    re.IGNORECASE,
)
_LABEL_ENDS = re.compile(r"[ =~_|*#]*:")
_POINTS_BACK = re.compile(
    r"\W*(?:this|these|it|they|which|such|those|the (?:above|latter|former|same))\b", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The phrases of all sequences and of the grammar, with the role of each."""

    reader: Reader
    aliases: Mapping[str, Phrase]
    fillers: frozenset[Phrase]
    tags: Mapping[Phrase, Tag]

    def unknown(self, text: str, start: int, end: int) -> str | None:
        """Return the first word, mark or number of a span that keeps it from being understood."""
        if arrow := _ARROW.match(text, start, end):
            start = arrow.end()
        mentions = self.mentions(text, start, end)
        return _unknown_mark(text[start:end]) or self._unknown_word(mentions) or _unknown_sense(mentions)

    def names_only(self, text: str, start: int, end: int) -> bool:
        """Return whether a span names a finding and says nothing of it: `LGE`, `Scar:`."""
        mentions = self.mentions(text, start, end)
        kinds = [mention.kind for mention in mentions]
        head, _, _ = " ".join(kinds).partition(" colon ")
        is_headed = len(head) < len(" ".join(kinds)) and "state" in kinds[len(head.split()) :]
        return _SAYING.isdisjoint(kinds) and not (is_headed and {"state", "name"} & {*head.split()})

    def denies_behind(self, text: str, start: int, end: int) -> bool:
        """Return whether a span denies something behind its name: `MR and TR: none`."""
        return any(mention.kind == "negated_behind" for mention in self.mentions(text, start, end))

    def interprets(self, text: str, start: int, end: int) -> bool:
        """Return whether a span places a finding and says what it is: `bright septum, in keeping with oedema`."""
        kinds = {mention.kind for mention in self.mentions(text, start, end)}
        return {"lasting", "place"} <= kinds

    def names_other_organ(self, text: str, start: int, end: int) -> bool:
        """Return whether a span names an organ whose findings no report of ours has."""
        return any("other" in mention.names for mention in self.mentions(text, start, end))

    def shares_places(self, text: str, start: int, end: int) -> bool:
        """Return whether the places of a span are of all its findings: of one, or all before or behind them."""
        mentions = self.mentions(text, start, end)
        findings = [at for at, one in enumerate(mentions) if one.kind in ("name", "state")]
        traits = {mentions[at].trait for at in findings if mentions[at].kind == "state"}
        places = [at for at, one in enumerate(mentions) if one.kind == "place"]
        between = any(min(findings) < at < max(findings) for at in places) if findings else False
        return len(traits) < 2 or not between

    def _unknown_word(self, mentions: Sequence[Mention]) -> str | None:
        for mention in mentions:
            if mention.kind in _DOUBTS or mention.kind == "number":
                return mention.text
            if mention.text in _HALF_SAID:
                return mention.text
            if mention.kind == "neutral" and _TURNS & {*mention.text.split()}:
                return mention.text
            if mention.kind == "word" and mention.text not in MARKS and (mention.text,) not in self.fillers:
                return mention.text
        return None

    def mentions(self, text: str, start: int, end: int) -> list[Mention]:
        """Return the mentions of a span as it is spelled."""
        return self.reader.of_tokens(unfolded(tokens(text, start, end), self.aliases))


@functools.lru_cache(maxsize=8)
def vocabulary(catalogue: Catalogue) -> Vocabulary:
    """Build the vocabulary of a catalogue."""
    lexicons = list(catalogue.lexicons.values())
    fillers = frozenset({*grammar().fillers, *(phrase for lexicon in lexicons for phrase in lexicon.fillers)})
    tags: dict[Phrase, Tag] = dict.fromkeys(fillers, Tag("filler", "filler"))
    for lexicon in lexicons:
        tags |= lexicon.tags
    every = reader(replace(lexicons[0], tags=tags))
    aliases = {short: words for short, words in every.aliases.items() if short not in _TWO_MEANINGS}
    return Vocabulary(every, aliases, fillers, {**grammar().tags, **tags})


def unknown_words(text: str, catalogue: Catalogue) -> dict[Sentence, str]:
    """Return the sentences that are not understood, each with the word, mark or number that is the reason."""
    return dict(_unknown_words(plain(text), vocabulary(catalogue)))


def _unknown_words(text: str, words: Vocabulary) -> Iterator[tuple[Sentence, str]]:
    before: Sentence | None = None
    for sentence in sentences(text):
        reason = words.unknown(text, sentence.start, sentence.end)
        if reason is None and (topic := sentence.topic) is not None and _LABEL_ENDS.match(text, topic.end):
            reason = words.unknown(text, topic.start, topic.end)
        if reason is not None:
            yield sentence, reason
            if before is not None and _POINTS_BACK.match(text, sentence.start, sentence.end):
                yield before, reason
        before = sentence


def _unknown_mark(phrase: str) -> str | None:
    """Return a mark that leaves open what is meant: a choice, a gap, a bracket that nothing closes."""
    if images := _IMAGES.search(phrase) or _QUALITY.search(phrase):
        return images[0]
    if brace := _BRACES.search(phrase):
        return brace[0]
    if _OPTIONS.search(_BOTH_DENIED.sub(" ", _QUANTITIES.sub(" ", phrase))):
        return "/"
    depth = 0
    for letter in phrase:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return ")"
    return "(" if depth else '"' if phrase.count('"') % 2 else None


def _unknown_sense(mentions: Sequence[Mention]) -> str | None:
    """Return words that are known and leave open, together, what is meant: two denials, a choice."""
    denials: list[str] = []
    is_denied_before = False  # whether a denial stands behind its finding: `absent`
    if {"present", "absent"} <= {mention.text for mention in mentions}:
        return "present absent"
    for mention in mentions:
        if mention.kind in _JOINTS or mention.text == ";":
            denials = []
        elif mention.kind in _DENIALS or (is_denied_before and mention.name == "present"):
            denials.append(mention.text)
        is_denied_before = bool(denials) and (is_denied_before or mention.kind == "negated_behind")
        if len(denials) > 1 and "nor" not in denials:
            return " ".join(denials)
    if denied := [mention for mention in mentions if mention.kind in _DENIALS]:
        if any(mention.text == "yes" for mention in mentions):
            return "yes"
        if left := next((one for one in denied if one.text in ("no", "not") and _stops(mentions, one)), None):
            return left.text
    if mentions and mentions[-1].kind == "contrasts":
        return mentions[-1].text
    spans = [one.text for one in mentions if one.measure is not None and one.measure.low < one.measure.high]
    if spans and any(one.kind == "predicate" and one.name == "normal" for one in mentions):
        return "normal range"
    if denied and (rest := next((one for one in mentions if one.text in _RESTS), None)):
        return rest.text
    for first, second in pairwise(mentions):
        is_value = first.kind in _VALUES and second.kind in _VALUES
        if is_value or (first.text == "in" and second.kind == "disease"):
            return f"{first.text} {second.text}"
    choice = next((at for at, mention in enumerate(mentions) if mention.kind == "or"), None)
    if choice is not None and not any(mention.kind in _DENIALS for mention in mentions[:choice]):
        return mentions[choice].text
    return next(
        (_text(clause) for before, clause in pairwise(clauses(mentions)) if _is_choice(before, clause)), None
    )


def _stops(mentions: Sequence[Mention], denial: Mention) -> bool:
    """Return whether a denial stands at the end of a list or a clause: `the lateral wall does not`, `no, septal`."""
    at = mentions.index(denial)
    behind = mentions[at + 1 :]
    return (bool(behind) and (behind[0].kind == "comma" or behind[0].text == ";")) or (
        denial.text == "not" and not behind
    )


def _is_choice(before: Clause, clause: Clause) -> bool:
    """Return whether a clause is nothing but a further value of what stands before it: `normal, reduced`."""
    if clause.joint == "contrasts" and clause.kinds.isdisjoint(_STATING):
        return True  # an exception: `no LGE but the septum`
    if before.of_kind("negated_behind") and clause.kinds <= {"place", "grade"}:
        return True  # `none; focal; diffuse`
    has_value = bool(clause.of_kind("predicate", "negated_behind", "state") and before.of_kind(*_VALUES))
    is_bare = not clause.of_kind("name", "structure", "place", "measure", "negated", "lasting")
    return clause.joint in ("comma", "and") and is_bare and has_value


def _text(clause: Clause) -> str:
    return " ".join(mention.text for mention in clause.mentions)
