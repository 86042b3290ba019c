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
_BEGINNING = 10
_SHORT = 60
"""A paragraph of fewer characters says too little to describe a page."""


@dataclass(frozen=True)
class Page:
    """One page of the site, as a program is told of it: its name has no ``.html``."""

    name: str
    title: str
    description: str
    # A picture that stands for it: a path in the site, or "".
    picture: str
    chapter: bool

    @property
    def file(self) -> str:
        """Its path in the site."""
        return f"{self.name}.html"


def write(root: Path, site: Path, each: workers.Each = workers.alone) -> None:
    """Add the facts to every page of ``site``, and beside the pages what indexes and archives look for."""
    who = project.identity(root)
    chapters = {chapter.name: chapter for chapter in (notebooks.load(root, n) for n in notebooks.names(root))}
    pictures = {name: path for name, chapter in chapters.items() if (path := _picture(site, chapter))}
    # A page that has no picture is shown with that of the first chapter.
    first = next(iter(pictures.values()), "")
    asked = []
    for name in notebooks.pages(root):
        own = name.removeprefix("notebooks/")
        asked.append((name, chapters[own].summary if own in chapters else None, pictures.get(own, first)))
    written: list[Page] = each(partial(_written, site, who), asked)
    (site / "sitemap.xml").write_text(_sitemap(written, who), encoding="utf-8")
    (site / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {who.site}sitemap.xml\n", encoding="utf-8")
    (site / "404.html").write_text(_lost(written, who), encoding="utf-8")
    (site / "llms.txt").write_text(_index(written, who), encoding="utf-8")


def _written(site: Path, who: project.Identity, asked: tuple[str, str | None, str]) -> Page:
    """A page with its facts in its head; asked are name, summary and picture."""
    name, summary, picture = asked
    text = (site / f"{name}.html").read_text(encoding="utf-8")
    main = main_part(text)
    page = _page(name, _article(_beginning(main)), summary, picture)
    if page.description == page.title or page.title == name:
        page = _page(name, _article(main), summary, picture)
    head = _head(site, page, who)
    (site / page.file).write_text(text.replace("</title>", f"</title>\n{head}", 1), encoding="utf-8")
    return page


def _beginning(main: str) -> str:
    """What stands before the end of the tenth paragraph: there a page has its title, and says what it is about."""
    ends = [found.end() for found in islice(re.finditer("</p>", main), _BEGINNING)]
    return main[: ends[-1]] if len(ends) == _BEGINNING else main


def _article(main: str) -> Tag:
    soup = BeautifulSoup(main, "html.parser")
    article = soup.select_one("article.bd-article") or soup.select_one("main") or soup
    for gone in article.select(_FRAME):
        gone.decompose()
    return article


def _picture(site: Path, chapter: notebooks.Chapter) -> str:
    figure = f"figures/{chapter.thumbnail}/{chapter.thumbnail}.png"
    return figure if chapter.thumbnail and (site / figure).is_file() else ""


def _page(name: str, article: Tag, summary: str | None, picture: str) -> Page:
    heading = article.find("h1")
    title = " ".join(heading.get_text().split()) if heading else name
    if summary is not None:
        return Page(name, title, plain(summary), picture, chapter=True)
    texts = (" ".join(paragraph.get_text().split()) for paragraph in article.find_all("p"))
    return Page(
        name, title, _shortened(next((text for text in texts if len(text) > _SHORT), title)), picture, chapter=False
    )


def _shortened(text: str) -> str:
    if len(text) <= _DESCRIPTION:
        return text
    return text[:_DESCRIPTION].rpartition(" ")[0].rstrip(".,;:") + "..."


def _address(page: Page, who: project.Identity) -> str:
    return who.site if page.name == "index" else who.site + page.file


def _head(site: Path, page: Page, who: project.Identity) -> str:
    """Description, Open Graph, and Highwire's names for reference managers."""
    up = "../" * page.name.count("/")
    picture = page.picture
    named = {
        "description": page.description,
        "citation_title": page.title if page.name != "index" else who.title,
        "citation_author": who.author,
        "citation_publication_date": who.year,
        "citation_public_url": _address(page, who),
        "citation_language": "en",
        "twitter:card": "summary_large_image" if picture else "summary",
    }
    if page.name != "index":
        named["citation_inbook_title"] = who.title
    if who.doi:
        named["citation_doi"] = who.doi
    properties = {
        "og:title": page.title,
        "og:description": page.description,
        "og:type": "article" if page.chapter else "website",
        "og:url": _address(page, who),
        "og:site_name": who.title,
    }
    if picture:
        properties["og:image"] = who.site + picture
    lines = [f'<meta name="{name}" content="{html.escape(text)}" />' for name, text in named.items()]
    lines += [f'<meta property="{name}" content="{html.escape(text)}" />' for name, text in properties.items()]
    if (site / _ICON).is_file():
        lines.append(f'<link rel="icon" type="image/svg+xml" href="{up}{_ICON}" />')
    return "\n".join(lines)


def _sitemap(pages: Sequence[Page], who: project.Identity) -> str:
    lines = [f"  <url><loc>{html.escape(_address(page, who))}</loc></url>" for page in pages]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return "\n".join([head, *lines, "</urlset>"]) + "\n"


def _lost(pages: Sequence[Page], who: project.Identity) -> str:
    """The page for an address that leads nowhere."""
    links = [(_address(page, who), page.title) for page in pages if page.chapter or page.name == "index"]
    return f"{fill('lost.page', title=who.title, links=links)}\n"


def _index(pages: Sequence[Page], who: project.Identity) -> str:
    """``llms.txt``: the title, what the book is, and every page with one sentence."""
    first = next(page for page in pages if page.name == "index")
    lines = [f"# {who.title}", "", f"> {first.description}", ""]
    data = ", ".join(f"[{name}]({who.site}{name})" for name in (*catalogue.FILES, catalogue.INDEX))
    lines += [f"The facts as data: {data}. Pages name claims by their ids in claims.json."]
    for heading, wanted in (("Chapters", True), ("Other pages", False)):
        lines += ["", f"## {heading}", ""]
        lines += [
            f"- [{page.title}]({_address(page, who)}): {page.description}"
            for page in pages
            if page.chapter is wanted and page.name != "index"
        ]
    return "\n".join(lines) + "\n"
