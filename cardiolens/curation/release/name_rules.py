"""Names beside a title, a degree, an initial or a label, in the letters of most of the world."""

import re
from collections.abc import Iterator

from cardiolens.curation.release.identity_rule import WORD, Rule, Words, any_of, rule

_HAN = r"[\u3040-\u30ff\u4e00-\u9fff]"
_HANGUL = r"[\uac00-\ud7a3]"
_NAME = rf"(?P<name>{WORD}(?:\s{WORD}){{0,2}})"
_INITIALS = r"(?<![\w.])[^\W\d_]\.[ -]?(?:[^\W\d_]\.[ -]?){0,3}"


def name_rules(words: Words) -> Iterator[Rule]:
    """Yield the rules of names."""
    title = rf"(?:(?i:{any_of(words['titles'])})|{any_of(words['titles_as_written'])})"
    yield rule("name", rf"(?<!\w)(?P<title>{title})(?:\.\s?|\s){_NAME}", _follows_title)
    yield rule("name", rf"(?<!\w)(?i:{any_of(words['titles_joined'])})\s?{_NAME}")
    yield rule("name", rf"(?<!\w)(?:MR|MS)\.\s?{_NAME}", _in_capitals)
    yield rule("name", rf"{_HAN}{{1,4}}\s?{any_of(words['titles_behind_han'])}")
    yield rule("name", rf"{_HANGUL}{{2,4}}\s?{any_of(words['titles_behind_hangul'])}(?!\w)")
    yield rule("name", rf"(?<![\w'’.-]){_NAME},?\s{any_of(words['degrees'])}(?!\w)", _ends_in_capital)
    yield rule("name", rf"{_INITIALS}(?P<name>[^\W\d_]{{2,}})", _follows_initial)
    by = rf"(?:\s{any_of(words['links_by'])}\s|\s?[:=]\s?)"
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


def _ends_in_capital(match: re.Match[str]) -> bool:
    return _capital(match["name"].rsplit(maxsplit=1)[-1])


def _in_capitals(match: re.Match[str]) -> bool:
    """MR stands for magnetic resonance, and for somebody before a word in capitals."""
    first = match["name"].split(maxsplit=1)[0]
    return len(first) > 2 and first.isupper()
