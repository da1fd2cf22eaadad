"""Layouts of reports: forms, tables and dictations become sentences, letter by letter in their places."""

import functools
from collections.abc import Iterator

from cardiolens.report_text.details import of_details
from cardiolens.report_text.exceptions import of_exceptions
from cardiolens.report_text.filled_fields import of_filled_fields
from cardiolens.report_text.forms import is_unanswered, of_forms
from cardiolens.report_text.number_lists import of_number_lists
from cardiolens.report_text.own_marks import of_own_marks
from cardiolens.report_text.separators import of_separators
from cardiolens.report_text.shares import of_shares
from cardiolens.report_text.shorthand import of_shorthand
from cardiolens.report_text.side_by_side import of_columns_without_head
from cardiolens.report_text.spoken import of_dictation
from cardiolens.report_text.table_columns import of_columns
from cardiolens.report_text.table_rows import of_rows
from cardiolens.report_text.terse_pairs import of_terse_pairs


class _Plain(str):
    """A text whose layout was read; a second reading could take what was left in doubt for a sentence."""

    __slots__ = ()


def plain(text: str) -> str:
    """Return a text of the same length in which every line is a sentence, or blank where it says nothing."""
    return text if isinstance(text, _Plain) else _plain(text)


@functools.lru_cache(maxsize=64)
def _plain(text: str) -> _Plain:
    spelled = of_shorthand(of_terse_pairs(of_shares(of_number_lists(of_filled_fields(of_own_marks(text))))))
    forms = of_columns(of_columns_without_head(of_forms(spelled)))
    return _Plain(of_exceptions(of_dictation(of_details(of_rows(of_separators(forms))))))


def left_out(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines that were blanked out as a whole, though they may say something."""
    read, start = plain(text), 0
    for line in text.splitlines(keepends=True):
        end = start + len(line.rstrip("\n"))
        has_words = any(letter.isalpha() for letter in line)
        if has_words and not read[start:end].strip() and not is_unanswered(line):
            yield start, end
        start += len(line)
