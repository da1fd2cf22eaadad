"""Whether a reading without an explicit mark is certain: what is not counts as unread (protocol 17.16)."""

from collections.abc import Iterator

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.elimination import NORMAL
from cardiolens.score.verdicts.explained_away import is_another_cause
from cardiolens.score.verdicts.known_words import KnownWords, since_conclusion, up_to_comma
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import Keys
from cardiolens.score.verdicts.reply_clauses import NAMES, Clause, clauses, polarity
from cardiolens.score.verdicts.reply_tokens import Token
from cardiolens.score.verdicts.topics import Topics

_OF_STATEMENTS = frozenset({"enumeration", "heading"})
_IN_OWN_WORDS = frozenset({"option_text", "answer_phrase", "heading"})
_PERCEIVED = frozenset({"seen", "visible", "visualised", "covered", "assessable"})


class Certainty:
    """Judges the readings of replies to one question."""

    def __init__(self, question: str, texts: OptionTexts, *, several: bool) -> None:
        self._topics = Topics.of(question)
        self._texts = texts
        self._several = several
        self._known = KnownWords(question, texts, several=several)

    def holds(self, tokens: list[Token], keys: Keys, rule: str, *, is_marked: bool) -> bool:
        """Return whether each option is named by a clause of the question's topics and of known words.

        A clause in words that no rule knows may say anything of its options: "the claim that B moves".
        """
        supported: set[str] = set()
        named: set[str] = set()
        all_clauses = clauses(tokens)
        entries = [clause for clause in all_clauses if any(token.kind in NAMES for token in clause)]
        is_prose = rule in _IN_OWN_WORDS or (
            rule == "enumeration"
            and len(entries) == 1
            and all(token.key in keys for token in entries[0] if token.kind in NAMES)
        )
        for clause, before in _naming(all_clauses, frozenset(keys)):
            keys_of_clause = {token.key for token in clause if token.kind in NAMES}
            named |= keys_of_clause
            is_headed = bool(before) and before[-1].kind == "colon" and rule not in _OF_STATEMENTS
            is_obscure = (is_prose and self._known.hide(clause)) or (is_headed and self._known.lack(before))
            is_clear = is_marked or not (
                is_obscure or (rule == "enumeration" and self._only_sees(clause, tokens))
            )
            if is_clear and not self._is_foreign(clause, before, rule):
                supported |= keys_of_clause
        return (named & set(keys)) <= supported and not (
            (rule == "option_text" and self._is_contradicted(tokens, keys))
            or (not is_marked and self._has_other_columns(tokens, rule))
        )

    def _has_other_columns(self, tokens: list[Token], rule: str) -> bool:
        """Return whether the head of a table says that its marks are not those of the question."""
        if not any(token.kind == "bar" for token in tokens):
            return False
        head = next(iter(clauses(tokens)), [])
        is_head = len(head) > 1 and not any(token.key for token in head)
        return is_head and (
            any(token.kind == "no" or token.text.lower() in _PERCEIVED for token in head)
            or is_another_cause(head)
            or (rule == "enumeration" and self._topics.are_left_by(_text(head)))
            or (rule == "answer_phrase" and self._known.lack(head))
        )

    def introduces(self, tokens: list[Token], keys: Keys) -> bool:
        """Return whether options that a text names stand behind a known word: "so D", not "against D"."""
        openings = [
            clause[: next(at for at, token in enumerate(clause) if token.kind in NAMES)][-1:]
            for clause, _ in _naming(clauses(tokens), frozenset(keys))
        ]
        return not openings or any(not self._known.lack(opening) for opening in openings)

    def _is_contradicted(self, tokens: list[Token], keys: Keys) -> bool:
        """Return whether a reply that names the normal option has a finding: "No LGE; LGE in the septum"."""
        if len(keys) != 1 or not NORMAL.match(dict(self._texts.options).get(keys[0], "")):
            return False
        return any(
            not any(token.key in keys for token in clause)
            and self._finds(clause)
            and not is_another_cause(clause)
            and not self._topics.are_left_by(_text(clause))
            for clause in clauses(tokens)
        )

    def _finds(self, clause: Clause) -> bool:
        """Return whether a clause states a finding, and neither denies it nor leaves it open."""
        stance = polarity(clause)
        finds = any(token.text.lower() in words().findings or token.key for token in clause)
        return stance == "yes" or (stance == "bare" and finds)

    def _is_foreign(self, clause: Clause, before: Clause, rule: str) -> bool:
        """Return whether a clause speaks of something else than the question."""
        at = next(at for at, token in enumerate(clause) if token.kind in NAMES)
        head = before + since_conclusion(clause[:at])
        is_whole = rule in _OF_STATEMENTS or (self._several and rule != "answer_phrase")
        is_said_of = [token.kind for token in clause[at + 1 : at + 2]] == ["verb"]
        if is_whole or is_said_of or clause[at].kind != "key":
            head = head + up_to_comma(clause[at:], brackets=not self._several)
        by_letter = clause[at].kind == "key" and at > 0 and clause[at - 1].kind in {"colon", "verb", "key"}
        return self._topics.are_left_by(_text(head)) or (
            by_letter and self._topics.is_of_other_places(_text(head))
        )

    def _only_sees(self, clause: Clause, tokens: list[Token]) -> bool:
        """Return whether a clause says that an option is seen, of a reply that does not say what of it."""
        if not self._topics.asks_for_places:
            return False
        affirming = {token.text.lower() for token in clause if token.kind == "yes"}
        return bool(affirming) and affirming <= _PERCEIVED and not self._topics.are_in(_text(tokens))


def _naming(all_clauses: list[Clause], keys: frozenset[str]) -> Iterator[tuple[Clause, Clause]]:
    """The clauses that name options and do not deny them, each with the question or heading before it."""
    for at, clause in enumerate(all_clauses):
        names = [
            token for token in clause if token.key in keys and (token.kind != "key" or token.text.isupper())
        ]
        if not any(token.kind in NAMES for token in names) or polarity(clause) == "no":
            continue
        is_reply = at > 0 and all_clauses[at - 1][-1].kind in {"query", "colon"}
        opens = next((token.kind for token in clause if token.kind not in {"bullet", "open", "label"}), "")
        yield clause, all_clauses[at - 1] if is_reply and opens in NAMES else []


def _text(tokens: Clause) -> str:
    return " ".join(token.text for token in tokens)
