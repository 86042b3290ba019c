"""What programs read that cite or index the site: facts in the head of every page, and lists of all pages and files.
Nothing here is shown to a reader.

Every fact comes from the finished site and the book's identity; addresses are those that the owner has set in
``_config.yml``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from companion import project
from companion.declaring import notebooks
from companion.plain import plain
from companion.running import workers
from companion.site import catalogue
from companion.site.markup import fill
from companion.site.pages import main_part

_ICON = "_static/favicon.svg"
_DESCRIPTION = 300
"""Characters that indexes show of a description."""
_FRAME = "script, style, svg, template, .headerlink, .toctree-wrapper, .book-cite, .section-number, .book-checked"
"""What belongs to the frame of a page, to its look, or to one figure's files."""
_SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">"""
_BEGINNING = 30
_SHORT = 60
"""A paragraph of fewer characters says too little to describe a page."""


@dataclass(frozen=True)
class Page:
    """One page of the site, as a program is told of it: its name has no ``.html``."""

    name: str
    address: str
    title: str
    description: str
    # A picture that stands for it: a path in the site, or "".
    picture: str
    chapter: bool


def write(root: Path, site: Path, each: workers.Each = workers.alone) -> None:
    """Add the facts to every page of ``site``, and beside the pages what indexes and archives look for."""
    who = project.identity(root)
    chapters = {f"notebooks/{name}": notebooks.load(root, name) for name in notebooks.names(root)}
    pictures = {name: path for name, chapter in chapters.items() if (path := _picture(site, chapter))}
    # A page that has no picture is shown with that of the first chapter.
    first = next(iter(pictures.values()), "")
    asked = [
        (name, chapters[name].summary if name in chapters else None, pictures.get(name, first))
        for name in notebooks.pages(root)
    ]
    written: list[Page] = each(partial(_written, site, who), asked)
    links = [(page.address, page.title) for page in written if page.chapter or page.name == "index"]
    addresses = "".join(f"  <url><loc>{html.escape(page.address)}</loc></url>\n" for page in written)
    for name, text in {
        "sitemap.xml": f"{_SITEMAP}\n{addresses}</urlset>\n",
        "robots.txt": f"User-agent: *\nAllow: /\nSitemap: {who.site}sitemap.xml\n",
        "404.html": fill("lost.page", title=who.title, links=links) + "\n",
        "llms.txt": _index(written, who),
    }.items():
        (site / name).write_text(text, encoding="utf-8")


def _written(site: Path, who: project.Identity, asked: tuple[str, str | None, str]) -> Page:
    """A page with its facts in its head; asked are name, summary and picture."""
    path = site / f"{asked[0]}.html"
    text = path.read_text(encoding="utf-8")
    page = _page(who, _beginning(main_part(text)), *asked)
    icon = "../" * page.name.count("/") + _ICON if (site / _ICON).is_file() else ""
    head = fill("head.facts", page=page, who=who, icon=icon)
    path.write_text(text.replace("</title>", f"</title>\n{head}", 1), encoding="utf-8")
    return page


def _beginning(main: str) -> Tag:
    """What stands before the end of the thirtieth paragraph: there a page has its title, and says what it is about."""
    ends = [found.end() for found in islice(re.finditer("</p>", main), _BEGINNING)]
    soup = BeautifulSoup(main[: ends[-1]] if len(ends) == _BEGINNING else main, "html.parser")
    article = soup.select_one("article.bd-article") or soup.select_one("main") or soup
    for gone in article.select(_FRAME):
        gone.decompose()
    return article


def _picture(site: Path, chapter: notebooks.Chapter) -> str:
    figure = f"figures/{chapter.thumbnail}/{chapter.thumbnail}.png"
    return figure if chapter.thumbnail and (site / figure).is_file() else ""


def _page(who: project.Identity, article: Tag, name: str, summary: str | None, picture: str) -> Page:
    heading = article.find("h1")
    title = " ".join(heading.get_text().split()) if heading else name
    if summary is None:
        texts = (" ".join(paragraph.get_text().split()) for paragraph in article.find_all("p"))
        description = _shortened(next((text for text in texts if len(text) > _SHORT), title))
    else:
        description = plain(summary)
    address = who.site if name == "index" else f"{who.site}{name}.html"
    return Page(name, address, title, description, picture, chapter=summary is not None)


def _shortened(text: str) -> str:
    if len(text) <= _DESCRIPTION:
        return text
    return text[:_DESCRIPTION].rpartition(" ")[0].rstrip(".,;:") + "..."


def _index(pages: Sequence[Page], who: project.Identity) -> str:
    """``llms.txt``: the title, what the book is, and every page with one sentence."""
    first = next(page for page in pages if page.name == "index")
    lines = [f"# {who.title}", "", f"> {first.description}", ""]
    data = ", ".join(f"[{name}]({who.site}{name})" for name in (*catalogue.FILES, catalogue.INDEX))
    lines += [f"The facts as data: {data}. Pages name claims by their ids in claims.json."]
    for heading, wanted in (("Chapters", True), ("Other pages", False)):
        lines += ["", f"## {heading}", ""]
        lines += [
            f"- [{page.title}]({page.address}): {page.description}"
            for page in pages
            if page.chapter is wanted and page.name != "index"
        ]
    return "\n".join(lines) + "\n"
