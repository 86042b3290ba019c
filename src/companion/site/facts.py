"""Says what a page is and what run it shows: facts below its title, the fold at its foot, the status of all pages."""

from __future__ import annotations

from docutils import nodes

from companion import pages, project
from companion.site.onpage import Directive, Role

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
        page = pages.load(self.root, self.arguments[0])
        audit = f"{pages.AUDITS}/{page.chapter}"
        return [self.filled("page.facts", page, audit if audit in pages.names(self.root) else "", _LEGEND)]


class Provenance(Directive):
    """``{provenance} NAME``: the foot of a page, a closed fold that says what run it shows and how it is cited."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = next(page for page in self.read("status.json")["chapters"] if page["page"] == self.arguments[0])
        if page["state"] != "finished":
            return []
        who = project.identity(self.root)
        name = f"{who.library}:{pages.slug(page['page'])}"
        entry = who.bibtex(name, page["title"], who.chapter_url(page["page"]))
        return [self.filled("page.provenance", page=page, entry=entry)]


class ChapterStatus(Directive):
    """``{chapter-status}``: when, from what and how each chapter was run."""

    def run(self) -> list[nodes.Node]:
        return [self.filled("page.table", status=self.read("status.json"))]


class SiteUrl(Role):
    """``{siteurl}`NAME` ``: a link to a file at the root of the site, which is there only after the pages are made."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        return [self.filled("page.file", self.text)], []
