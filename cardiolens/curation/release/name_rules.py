"""Names beside a title, a degree, an initial, a label or another name, in most letters of the world."""

import re
from collections.abc import Iterator

from cardiolens.curation.release.identity_rule import WORD, Rule, Words, any_of, rule

_HAN = r"[\u3040-\u30ff\u4e00-\u9fff]"
_HANGUL = r"[\uac00-\ud7a3]"
_NAME = rf"(?P<name>{WORD}(?:\s{WORD}){{0,2}})"
_LETTERS = r"[^\W\d_](?:['’]?[^\W\d_]){2,}"
_TWO = rf"(?<![\w'’-]){_LETTERS}(?=(?P<name>,? {_LETTERS})(?![\w'’]))"
_INITIALS = r"(?<![\w.])[^\W\d_]\.[ -]?(?:[^\W\d_]\.[ -]?){0,3}"


def name_rules(words: Words, vocabulary: frozenset[str]) -> Iterator[Rule]:
    """Yield the rules of names; `vocabulary` holds words, in small letters, that are no names."""

    def is_unknown(match: re.Match[str]) -> bool:
        """Whether the first word of a name is no word of the vocabulary."""
        return re.findall(r"[^\W\d_]+", match["name"])[0].casefold() not in vocabulary

    title = rf"(?:(?i:{any_of(words['titles'])})|{any_of(words['titles_as_written'])})"
    yield rule("name", rf"(?<!\w)(?P<title>{title})(?:\.\s?|\s){_NAME}", _follows_title)
    yield rule("name", rf"(?<!\w)(?i:{any_of(words['titles_joined'])})\s?{_NAME}")
    yield rule("name", rf"(?<!\w)(?:MR|MS)\.\s?{_NAME}", lambda at: _in_capitals(at) and is_unknown(at))
    yield rule("name", rf"{_HAN}{{1,4}}\s?{any_of(words['titles_behind_han'])}")
    yield rule("name", rf"{_HANGUL}{{2,4}}\s?{any_of(words['titles_behind_hangul'])}(?!\w)")
    yield rule("name", rf"(?<![\w'’.-]){_NAME},?\s{any_of(words['degrees'])}(?!\w)", _ends_in_capital)
    yield rule(
        "name", rf"{_INITIALS}(?P<name>[^\W\d_]{{2,}})", lambda at: _follows_initial(at) and is_unknown(at)
    )
    yield rule(
        "name",
        _TWO,
        lambda at: _are_capital(at) and is_unknown(at) and at[0].casefold() not in vocabulary,
    )
    yield rule(
        "name",
        r"(?<=[\s.])/\s?(?P<name>[^\W\d_]['’]?[^\W\d_]+)",  # as dictations are signed
        lambda at: _capital(at["name"]) and is_unknown(at),
    )
    by = rf"(?:\s{any_of(words['links_by'])}(?:\s?:)?\s|\s?[:=]\s?)"
    strong = rf"(?i:{any_of(words['labels_of_persons'])})[:,]?\s"
    yield rule("name", rf"(?<!\w){strong}{_NAME}", lambda at: _capital(at["name"]) and is_unknown(at))
    label = rf"(?i:{any_of(words['labels'])})(?:'s)?(?i:\s(?:name|is|est|ist|es|è))*"
    for words_before in (label, rf"(?i:{any_of(words['labels_by'])})"):
        yield rule("name", rf"(?<!\w){words_before}(?P<by>{by}|\s){_NAME}", _follows_label)
    yield rule("name", rf"{any_of(words['labels_han'])}\s?[::]\s?\w+")
    yield rule("name", r"(?<!\w)[^\W\d_]{2,}\^[^\W\d_]+")  # as DICOM writes them


def _capital(word: str) -> bool:
    """Whether a word begins as names do: with a capital, or in a script that has none."""
    return word[:1].isupper() or word[:1].lower() == word[:1].upper()


def _follows_title(match: re.Match[str]) -> bool:
    """A capital within three words, for `van der`; in texts of small letters names are small, too."""
    names = match["name"].split()
    return any(map(_capital, names)) if _capital(match["title"]) else len(names[0].strip(".")) > 1


def _follows_label(match: re.Match[str]) -> bool:
    """One capital behind a colon or `by`; two behind a blank alone."""
    names = match["name"].split()
    is_told = bool(match["by"].strip()) or match[0][: match.start("by") - match.start()].endswith(
        (" is", " est")
    )
    return _capital(names[0]) and (is_told or (len(names) > 1 and _capital(names[1])))


def _follows_initial(match: re.Match[str]) -> bool:
    return match[0][0].isupper() and match["name"][0].isupper() and match["name"][-1].islower()


def _are_capital(match: re.Match[str]) -> bool:
    """Whether both of two words have a capital, and at least one is no abbreviation."""
    words = match[0], match["name"].lstrip(", ")
    return all(word[0].isupper() for word in words) and any(word[1:].islower() for word in words)


def _ends_in_capital(match: re.Match[str]) -> bool:
    return _capital(match["name"].rsplit(maxsplit=1)[-1])


def _in_capitals(match: re.Match[str]) -> bool:
    """MR stands for magnetic resonance, and for somebody before a word in capitals."""
    first = match["name"].split(maxsplit=1)[0]
    return len(first) > 2 and first.isupper()
