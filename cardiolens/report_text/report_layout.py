"""Layouts of reports: forms and tables become sentences, letter by letter in their places."""

import functools

from cardiolens.report_text.filled_fields import of_filled_fields
from cardiolens.report_text.forms import of_forms
from cardiolens.report_text.own_marks import of_own_marks
from cardiolens.report_text.shorthand import of_shorthand
from cardiolens.report_text.table_rows import of_rows


class _Plain(str):
    """A text whose layout was read; a second reading could take what was left in doubt for a sentence."""

    __slots__ = ()


def plain(text: str) -> str:
    """Return a text of the same length in which every line is a sentence, or blank where it says nothing."""
    return text if isinstance(text, _Plain) else _plain(text)


@functools.lru_cache(maxsize=64)
def _plain(text: str) -> _Plain:
    return _Plain(of_rows(of_forms(of_shorthand(of_filled_fields(of_own_marks(text))))))
