"""The answers of a page's first screen, which are those of a sweep's end on the terminal too."""

from cardiolens.show.page.elements import Answer
from cardiolens.show.page.further_answers import further_answers
from cardiolens.show.page.headline_answers import answers
from cardiolens.show.page.page_data import Facts


def first_screen(facts: Facts) -> list[Answer]:
    """Every answer of the page, in the order in which it stands there."""
    return [*answers(facts), *further_answers(facts)]
