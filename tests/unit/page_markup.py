"""The elements of a page, as tests read them."""

import json
from html.parser import HTMLParser
from typing import Any


class Markup(HTMLParser):
    """The elements of a page and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tables: dict[str, Any] = {}
        self.addresses: list[str] = []
        self._table: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [str(found["id"])] if "id" in found else []
        self.addresses += [str(found[name]) for name in ("src", "href") if name in found]
        self._table = found.get("data-table") if "data-chunk" not in found else None

    def handle_data(self, data: str) -> None:
        if self._table and data.strip():
            self.tables[self._table] = json.loads(data)


def records(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table of the page, by the names of its columns."""
    names = [name for name, _, _ in table["columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]
