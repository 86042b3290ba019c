"""What helps to read on: facts below the title of a page, links along the road of lessons, and the scripts of readers.

The scripts hide code, enlarge figures, and show what scrolls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from markupsafe import escape
from sphinx.application import Sphinx

from companion.declaring import notebooks
from companion.site.directives import Directive

_LEGEND = {
    "reproduced": "as the source says",
    "not-reproduced": "not as the source says",
    "result": "a result of this book",
    "exploratory": "a first look",
}
"""What the marks of a lesson mean, in its first lines."""


class PageFacts(Directive):
    """``{page-facts} NAME``: how long a page is, what it needs, and where the other page of its chapter is."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = notebooks.load(self.root, self.arguments[0])
        audit = f"{notebooks.AUDITS}/{page.chapter}"
        known = audit if audit in notebooks.names(self.root) else ""
        return [self.filled("prose.facts", page, known, _LEGEND)]


def follow_the_road(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """From one lesson to the next: an audit lies beside the road, between its lesson and the lesson after that."""
    root = Path(app.config.companion_root)
    lessons = [f"notebooks/{name}" for name in notebooks.chapters(root)]
    lesson = f"notebooks/{notebooks.chapter_of(pagename)}"
    if not pagename.startswith("notebooks/") or lesson not in lessons:
        return
    here = lessons.index(lesson)
    after = lessons[here + 1] if here + 1 < len(lessons) else None
    before = lesson if pagename != lesson else lessons[here - 1] if here else None
    for side, page in (("prev", before), ("next", after)):
        if page is not None:
            title = escape(notebooks.load(root, page.removeprefix("notebooks/")).title)
            context[side] = {"title": title, "link": context["pathto"](page)}
