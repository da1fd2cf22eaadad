"""Layouts of reports: forms, tables and dictations become sentences, letter by letter in their places."""

import functools

from cardiolens.report_text.details import of_details
from cardiolens.report_text.forms import of_forms
from cardiolens.report_text.shorthand import of_shorthand
from cardiolens.report_text.spoken import of_dictation
from cardiolens.report_text.table_rows import of_rows


@functools.lru_cache(maxsize=64)
def plain(text: str) -> str:
    """Return a text of the same length in which every line is a sentence, or blank where it says nothing."""
    return of_dictation(of_details(of_rows(of_forms(of_shorthand(text)))))
