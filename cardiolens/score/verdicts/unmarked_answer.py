"""The answer of a reply without marks: from the reply itself, its end or its statements (protocol 7.6)."""

import functools
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from cardiolens.score.verdicts.closing_letters import closing_letters, concluding_texts, leading_alone
from cardiolens.score.verdicts.commitments import Remark, said_of_options
from cardiolens.score.verdicts.complement import complement
from cardiolens.score.verdicts.elimination import left_by_denials, remaining, rest
from cardiolens.score.verdicts.enumerations import enumeration
from cardiolens.score.verdicts.last_commitment import committed
from cardiolens.score.verdicts.likelihoods import likeliest, with_per_cent
from cardiolens.score.verdicts.lists import end_of_list, first_entries, leading
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.prose import is_one_sentence, prose
from cardiolens.score.verdicts.question_words import QuestionWords
from cardiolens.score.verdicts.reading import UNREADABLE, NotReadableError, Reading, reading_of
from cardiolens.score.verdicts.reply import refuses
from cardiolens.score.verdicts.reply_clauses import (
    NAMES,
    Statement,
    clauses,
    further_options,
    is_explained_away,
    statements,
)
from cardiolens.score.verdicts.reply_tokens import ARROWS, Token, Tokenizer
from cardiolens.score.verdicts.second_thoughts import after
from cardiolens.score.verdicts.signed_entries import signed_entries
from cardiolens.score.verdicts.subject import Subject

RuleReading = tuple[str, Reading]

_SETS_OFF = frozenset({"stop", "close", "colon", "dash", "newline", "comma", "semicolon", "open", "reason"})
_LISTS_OPTIONS = re.compile(r"(?:options?|choices?|选项)[^\n]*:\s*$", re.IGNORECASE)
_NUMBERED_LETTERS = re.compile(
    r"^[ \t]*\(?\d+[.)][ \t]*([A-HZ](?:[ \t]*,[ \t]*[A-HZ])*)[ \t]*$", re.MULTILINE
)
_ARROW = re.compile(r"^\s*(?:→|⇒|->|=>)\s*")
_ENTRY = re.compile(r"[A-Z](?:[.):]| \w)")
_BETWEEN_LETTERS = frozenset(
    {"stop", "close", "open", "newline", "bar", "bullet", "join", "comma", "semicolon", "colon", "label"}
)
_JOINING = frozenset({"and", "plus", "&", "+", "und", "et", "y", "和"})
_OPTIONS = frozenset({"options", "choices"})
_UNDECIDED = frozenset({"cannot", "can't", "can not", "unsure", "not sure", "unclear"})
_SUPPOSES = re.compile(r"\W*(?:if|unless|were|had|wenn)\b", re.IGNORECASE)  # a clause on what is not so
_CONCLUDED = re.compile(r"[.;!\n]\s*(?:→|⇒|->|=>)\s*\(?([A-HZ])\)?[\s.]*\Z")  # "C: a line. ⇒ B"
_PAIR = re.compile(
    r"[\s\S]*\b(?P<first>[A-HZ]) (?:and|or|vs\.?) (?P<second>[A-HZ])\b(?P<between>[\s\S]*)"
    r"(?<!not )the (?P<which>former|latter)\W*",
    re.IGNORECASE,
)
_LETTER = re.compile(r"\b(?:[B-HJ-Z]|not|neither|nor|both|unclear|unsure)\b")
_BEFORE_OPTION = frozenset({"open", "label", "bullet", "yes", "no"})
_RANKED = re.compile(r"\b1[.)] ?([A-HZ])\b[^\n]*?\b2[.)] ?[A-HZ]\b")  # on one line
_RANKING = re.compile(r"rank|likel|order|probab", re.IGNORECASE)
_LETTER_FIRST = re.compile(r"\W*[A-Z]\b")
_SENTENCE_END = re.compile(r"[.;\n]\s")
_LONGEST_TEXT = 60  # characters of an option
_ALIKE, _APART = 0.9, 0.06  # of a misspelled text and its option, and of the others from these
_LONGEST_LINE = 200  # longer lines are not lists of options, and slow to tokenize


@dataclass(frozen=True)
class _Unmarked:
    """A reply without marks, taken apart once for all rules."""

    text: str
    tokens: list[Token]
    tokenizer: Tokenizer
    subject: Subject
    question: str
    several: bool

    @functools.cached_property
    def statements(self) -> list[Statement]:
        return statements(self.tokens)

    @property
    def texts(self) -> OptionTexts:
        return self.tokenizer.texts


def read_unmarked_answer(
    plain: str, tokenizer: Tokenizer, *, several: bool, question: str = ""
) -> RuleReading | None:
    """The rule and reading of a reply without marks; the first rule that matches wins."""
    text = tokenizer.texts.without_listing(plain).strip()
    tokens = tokenizer.tokens(text)
    subject = Subject(question, tokenizer.texts)
    reply = _Unmarked(text, tokens, tokenizer, subject, question, several)
    numbered = _NUMBERED_LETTERS.findall(text)
    is_list = several and all(len(letters) == 1 for letters in numbered) and numbered == sorted(numbered)
    if (len(numbered) > 1 and not is_list) or _copies_letters(tokens, tokenizer.texts):
        return "letters", UNREADABLE  # one answer to each of several questions; the letters of the prompt
    listed = _listed(reply)
    if of_one := None if several else _preferred(reply):
        return of_one
    if listed and _is_repetition(listed[1], tokens, tokenizer.texts):
        return None
    if listed and listed[1].readable:
        return listed[0], _after_list(reply, listed[1])
    return _unless_refused(_stated(reply, listed), reply)


def _listed(reply: _Unmarked) -> RuleReading | None:
    """Read a reply that is a list, or begins with one, of what its question asks about."""
    if _LISTS_OPTIONS.search(reply.text.partition("\n")[0]):
        return None
    listed = _list_only(reply.text, reply.tokens, reply.tokenizer)
    is_foreign = (
        listed is not None
        and listed[0] == "option_text"
        and reply.subject.is_foreign_in(clauses(reply.tokens))
    )
    return None if is_foreign else listed


def _preferred(reply: _Unmarked) -> RuleReading | None:
    """The option of a question with one answer that a reply sets above the others."""
    in_per_cent = with_per_cent(reply.text)
    shares = reply.tokens if in_per_cent == reply.text else reply.tokenizer.tokens(in_per_cent)
    if of_ranking := likeliest(shares, reply.texts):
        return "enumeration", of_ranking
    concluded = _CONCLUDED.search(reply.text)
    if concluded and concluded[1] in reply.texts.keys:
        return "answer_phrase", reading_of([concluded[1]])
    if ranked := _RANKED.search(reply.text):
        is_ranking = _RANKING.search(reply.text) is not None and ranked[1] in reply.texts.keys
        return "enumeration", reading_of([ranked[1]]) if is_ranking else UNREADABLE
    return _with_rule("answer_phrase", _former_or_latter(reply.text, reply.texts))


def _unless_refused(rule_reading: RuleReading | None, reply: _Unmarked) -> RuleReading | None:
    """A reading, unless the reply refuses: one that also commits itself ends with letters.

    All options are an answer only where they are affirmed: a refusal names what it cannot choose from.
    """
    if rule_reading is None or not rule_reading[1].readable:
        return rule_reading
    rule, reading = rule_reading
    is_all = len(reading.keys) > 1 and set(reading.keys) == reply.texts.keys
    if refuses(reply.text) and (is_all or rule in {"option_text", "enumeration"}):
        return None
    is_unread = rule == "answer_phrase" and _names_all_alone(reply, reading)
    return (rule, UNREADABLE) if is_unread else rule_reading


def _names_all_alone(reply: _Unmarked, reading: Reading) -> bool:
    """Return whether a reading has all options of a reply that affirms none of them."""
    is_all = len(reading.keys) > 1 and set(reading.keys) == reply.texts.keys
    return is_all and not any(stance == "yes" for _, stance in reply.statements)


def _stated(reply: _Unmarked, listed: RuleReading | None) -> RuleReading | None:
    """What a reply that is no list says, by the first rule that reads it."""
    text, tokens, several = reply.text, reply.tokens, reply.several
    if signed := signed_entries(text, reply.tokenizer):
        return "enumeration", signed
    enumerated = enumeration(reply.statements, () if several else reply.texts.keys)
    is_enumerated = enumerated is not None and enumerated.readable
    return (
        (
            None
            if is_enumerated
            else _with_rule("letters", _option_first(text, tokens, reply.tokenizer, several=several))
        )
        or _with_rule("option_text", complement(tokens, reply.texts) if several else None)
        or _last_lines(text, reply.tokenizer)
        or (
            None
            if is_enumerated
            else _with_rule("option_text", concluding_texts(reply.statements, reply.texts))
        )
        or _with_rule("enumeration", enumerated)
        or _with_rule("answer_phrase", closing_letters(tokens, reply.texts))
        or (None if several else _with_rule("answer_phrase", _last_sentence(tokens, reply.texts)))
        or _with_rule("answer_phrase", _committed(text, reply.tokenizer, several))
        or (None if several else _quoted_text(reply))
        or _with_rule("option_text", left_by_denials(reply.statements))
        or _with_rule(
            "option_text", rest(reply.statements, clauses(tokens), reply.texts) if several else None
        )
        or _with_rule(
            "option_text", remaining(reply.statements, reply.texts, reply.question, several=several)
        )
        or _with_rule("option_text", _misspelled(text, reply.texts))
        or _with_rule(
            "option_text", QuestionWords(reply.question, reply.texts).answer(tokens, several=several)
        )
        or (listed if _begins_with_option(tokens) and "\n" not in text else None)
        or _with_rule("option_text", _quoted(reply))
    )


def _after_list(reply: _Unmarked, reading: Reading) -> Reading:
    """The reading of a list that begins a reply, after what follows it: "B. No: C."."""
    kinds = {token.kind for token in reply.tokens}
    says_more = bool(kinds & NAMES) and bool(kinds & {"word", "verb"})
    if is_explained_away(reply.tokens) or (says_more and _names_all_alone(reply, reading)):
        return UNREADABLE
    end = end_of_list(reply.tokens, reply.texts, reading.keys)
    tail = "" if end is None else reply.text[end:]
    names_others = any(
        not set(remark.keys) <= set(reading.keys) for remark in said_of_options(tail, reply.tokenizer)
    )
    return after(tail, reading.keys, reply.tokenizer, several=reply.several) if names_others else reading


def _copies_letters(tokens: list[Token], texts: OptionTexts) -> bool:
    """Return whether a reply is the letters of all options in order, and nothing that makes them a list."""
    end = next((at for at, token in enumerate(tokens) if token.kind == "newline"), 0)
    if end and any(token.kind == "bar" for token in tokens[:end]):
        tokens = tokens[:end]  # the head of a table
    letters = [token for token in tokens if token.kind == "key"]
    signs = [token for token in tokens if token.kind != "key"]
    is_all = len(letters) > 2 and [token.key for token in letters] == [key for key, _ in texts.options]
    if not is_all or not {token.kind for token in signs} <= _BETWEEN_LETTERS:
        return False
    is_list = any(token.kind in {"comma", "semicolon"} or token.text in _JOINING for token in signs)
    return not is_list or any(token.text.lower() in _OPTIONS for token in signs)


def _former_or_latter(text: str, texts: OptionTexts) -> Reading | None:
    """Read a reply that ends with one of the two letters that it named last: "B or C? ... the latter."."""
    pair = _PAIR.fullmatch(text) if "former" in text or "latter" in text else None
    if pair is None or _LETTER.search(pair["between"]):
        return None
    key = pair["first" if pair["which"].lower() == "former" else "second"]
    return reading_of([key]) if key in texts.keys else None


def _last_sentence(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """Read a reply whose last sentence is one letter and nothing else: "Why not D? The EF is 35 %. C."."""
    end = len(tokens)
    while end and tokens[end - 1].kind in {"stop", "newline"}:
        end -= 1
    before = tokens[: end - 1]
    if any(token.text.lower() in _UNDECIDED for token in before):
        return None
    if len(before) > 1 and before[-1].text in ARROWS and not before[-2].key:
        before = [*before[:-1], before[-1]._replace(kind="stop")]  # "it is mildly reduced → B"
    if not end or tokens[end - 1].kind != "key" or not tokens[end - 1].text.isupper():
        return None
    at = next((at for at in range(len(before), 0, -1) if before[at - 1].kind != "newline"), 0)
    sentence = clauses(before[:at])[-1:] if at and before[at - 1].kind in {"stop", "query"} else []
    is_said = sentence and sum(token.kind == "word" or bool(token.key) for token in sentence[0]) > 1
    key = tokens[end - 1].key
    return reading_of([key]) if is_said and key in texts.keys else None


def _misspelled(text: str, texts: OptionTexts) -> Reading | None:
    """Read a reply that is the text of one option but for a wrong letter: "Midly reduced"."""
    reply = text.strip(" .").casefold()
    if len(reply) > _LONGEST_TEXT or _LETTER_FIRST.match(text):
        return None
    likeness = {spelling: SequenceMatcher(None, reply, spelling).ratio() for spelling in texts.spelled}
    alike = sorted(likeness, key=lambda spelling: -likeness[spelling])
    if not alike or likeness[alike[0]] < _ALIKE:
        return None
    key = texts.spelled[alike[0]]
    others = [likeness[spelling] for spelling in alike if texts.spelled[spelling] != key]
    return reading_of([key]) if max(others, default=0.0) < _ALIKE - _APART else None


def _is_repetition(reading: Reading, tokens: list[Token], texts: OptionTexts) -> bool:
    """Return whether a list is that of the prompt: each letter with its text, in order."""
    letters = [token.key for token in tokens if token.kind == "key"]
    named = {token.key for token in tokens if token.kind in {"text", "short"}}
    in_order = [key for key, _ in texts.options]
    return len(in_order) > 2 and letters == in_order and named == texts.keys == set(reading.keys)


def _committed(text: str, tokenizer: Tokenizer, several: bool) -> Reading | None:
    """Read the last commitment in prose ("This is most likely B."), if what follows leaves it standing."""
    reading_and_end = committed(text, tokenizer, several=several)
    if reading_and_end is None or not reading_and_end[0].readable:
        return reading_and_end and reading_and_end[0]
    reading, end = reading_and_end
    return after(text[end:], reading.keys, tokenizer, several=several)


def _speaks_against(remark: Remark, before: str) -> bool:
    """Return whether a remark denies its options, weighs them in another sentence, or explains them."""
    return (
        remark.stance == "denies"
        or (remark.stance == "hedges" and (remark.is_alone or _SENTENCE_END.search(before) is not None))
        or (remark.stance in {"hedges", "mentions", "explains"} and remark.is_gloss)
    )


def _is_letter(tokens: list[Token]) -> bool:
    """Return whether the first option of a reply is a letter."""
    return next(token.kind for token in tokens if token.kind in NAMES) == "key"


def _option_first(text: str, tokens: list[Token], tokenizer: Tokenizer, *, several: bool) -> Reading | None:
    """Read a reply that begins with options and then speaks against the others: "B. A would need ..."."""
    entry = first_entries(tokens, tokenizer.texts)
    if entry is None:
        return None
    keys, start = entry
    if len(keys) > 1 and not several:
        return None
    rest = text[start:]
    if _SUPPOSES.match(rest):
        return None  # "C, if the regurgitation is ignored"
    speaks_for_others = any(
        not (_speaks_against(remark, rest[: remark.start]) or _SUPPOSES.match(rest, remark.start, remark.end))
        for remark in said_of_options(rest, tokenizer, texts=several or not _is_letter(tokens))
        if not set(remark.keys) <= set(keys)
    )
    reading = None if speaks_for_others else after(rest, keys, tokenizer, several=several)
    return reading if reading and reading.readable else None


def _begins_with_option(tokens: list[Token]) -> bool:
    kinds = (token.kind for token in tokens)
    return next((kind for kind in kinds if kind not in _BEFORE_OPTION), None) in NAMES


def _with_rule(rule: str, reading: Reading | None) -> RuleReading | None:
    return (rule, reading) if reading else None


def _list_only(text: str, tokens: list[Token], tokenizer: Tokenizer) -> RuleReading | None:
    """Read a reply that is a list, or begins with letters and explains them."""
    kinds = {token.kind for token in tokens}
    rule = "option_text" if "key" not in kinds and kinds & {"text", "short"} else "letters"
    try:
        list_and_end = leading(tokens, tokenizer.texts, several=True, ranges=True)
    except NotReadableError:
        return rule, UNREADABLE
    if not list_and_end or not (list_and_end[1] or _opens_with_letters(tokens, list_and_end[0])):
        return None
    return (rule, list_and_end[0]) if _is_deliberate(text, tokens) else None


def _opens_with_letters(tokens: list[Token], reading: Reading) -> bool:
    """Return whether a reply begins with a separated capital letter, and names no other option."""
    letters = [token for token in tokens[:2] if token.kind == "key" and token.text.isupper()]
    after = tokens[tokens.index(letters[0]) + 1 :] if letters else []
    if not after or after[0].kind not in _SETS_OFF:
        return False
    return not any(further_options(clause, list(reading.keys)) for clause in clauses(tokens))


def _is_deliberate(text: str, tokens: list[Token]) -> bool:
    """Return whether letters written together are a list ("ACD", "DB") and no word ("be", "BAD")."""
    if any(token.key for token in tokens):
        return True
    letters = text[tokens[0].start : tokens[0].start + len(tokens[0].text)]
    return set(letters.upper()).isdisjoint("AEIOU") or (
        letters.isupper() and list(letters) == sorted(letters)
    )


def _last_lines(text: str, tokenizer: Tokenizer) -> RuleReading | None:
    """Read the last lines of a reply that hold only options ("... is reduced.", "B")."""
    lines = [_ARROW.sub("", line) for line in text.split("\n")]
    first = len(lines)
    while first and (not lines[first - 1].strip() or _is_list(lines[first - 1], tokenizer)):
        first -= 1
    block = "\n".join(lines[first:]).strip()
    before = "\n".join(lines[:first]).strip()
    if not block or not first or _LISTS_OPTIONS.search(before):
        return None
    line_before = before.rpartition("\n")[2][:_LONGEST_LINE]
    if _ENTRY.match(block) and _begins_with_option(tokenizer.tokens(line_before)):
        return None  # the end of a list of all options
    block_tokens = tokenizer.tokens(block)
    rule_reading = _list_only(block, block_tokens, tokenizer)
    if (
        rule_reading
        and block_tokens[0].text == "it's"
        and _says_otherwise(before, rule_reading[1], tokenizer)
    ):
        return "last_line", UNREADABLE
    return ("last_line", rule_reading[1]) if rule_reading else None


def _says_otherwise(before: str, reading: Reading, tokenizer: Tokenizer) -> bool:
    """Return whether a sentence states another option than the one that ends a reply: two answers."""
    stated = prose(statements(tokenizer.tokens(before)), several=False, brief=True, after_mark=False)
    return stated is not None and stated.readable and set(stated.keys) != set(reading.keys)


def _is_list(line: str, tokenizer: Tokenizer) -> bool:
    if len(line) > _LONGEST_LINE:
        return False
    reading = leading_alone(tokenizer.tokens(line), tokenizer.texts)
    return reading is not None and reading.readable


def _quoted(reply: _Unmarked) -> Reading | None:
    """Read option texts in prose, unless the reply has capital letters that no rule could read."""
    if any(token.kind == "key" and token.text.isupper() for token in reply.tokens):
        return None
    return prose(
        reply.statements,
        several=reply.several,
        brief=is_one_sentence(reply.tokens),
        after_mark=False,
        subject=reply.subject,
        all_clauses=clauses(reply.tokens),
    )


def _quoted_text(reply: _Unmarked) -> RuleReading | None:
    """Read the text of one option in prose, if that is readable."""
    reading = _quoted(reply)
    return ("option_text", reading) if reading and reading.readable else None
