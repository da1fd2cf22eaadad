"""A hook of mkdocs: what the search of the site shows first.

Reasons and rules are long and say every word; who searches wants the page of the task.
"""

from mkdocs.structure.pages import Page

BOOSTS = {"protocol/": 0.5, "reference/": 0.5}


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Lower the rank of pages below some folders, unless a page says its own."""
    for folder, boost in BOOSTS.items():
        if page.file.src_uri.startswith(folder):
            page.meta.setdefault("search", {"boost": boost})
    return markdown
