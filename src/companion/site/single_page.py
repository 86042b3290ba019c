"""Makes the book on paper: the lessons as one page to read, ``print.html`` of the site, and the audits as another.
Made from the finished pages; checks nothing.

The page of the audits is as large as all that it joins, and is there to be printed: it lies beside the site.

On paper nothing can be unfolded, moved or clicked. Answers to exercises are therefore open, while code that the site
folds away, such as that of figures, and models that run in the page are left out.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag
from markupsafe import Markup

from companion import project
from companion.declaring import notebooks
from companion.site.markup import fill

LESSONS = "print.html"
AUDITS = "print-audits.html"
_NOT_FOR_PAPER = (
    "script, template, button, .headerlink, .only-dark, .book-cite, .book-no-print, .book-frames, .book-live, "
    ".prev-next-area, details.hide, .toctree-wrapper"
)


def editions(root: Path) -> Mapping[str, Sequence[str]]:
    """The pages of each edition: the lessons or the audits, and those that ``_config.yml`` adds to them."""
    names, also = notebooks.names(root), project.settings(root).paper
    lessons = [f"notebooks/{name}" for name in names if notebooks.chapter_of(name) == name]
    audits = [f"notebooks/{name}" for name in names if notebooks.chapter_of(name) != name]
    found = {LESSONS: [notebooks.pages(root)[0], *lessons, *also.get("lessons", [])]}
    return found | ({AUDITS: [*audits, *also.get("audits", [])]} if audits else {})


def to_print(root: Path) -> Mapping[str, Path]:
    """The pages that a browser prints, by the name of their edition, of the site in ``_build/html``.

    That of the audits is made here, in ``_build/paper``. Raises ``ValueError`` if there is no site.
    """
    site, paper = root / "_build" / "html", root / "_build" / "paper"
    if not (site / LESSONS).is_file():
        raise ValueError(f"expected a finished site with {LESSONS}, found none; make book builds it")
    pages = {LESSONS: site / LESSONS}
    if audits := editions(root).get(AUDITS):
        paper.mkdir(exist_ok=True)
        write(site, AUDITS, audits, f"{project.identity(root).title}: the audits", paper)
        pages[AUDITS] = paper / AUDITS
    return pages


def write(site: Path, name: str, pages: Sequence[str], title: str, folder: Path | None = None) -> None:
    """Join the articles of ``pages`` (names without .html, in order) into the page ``name`` of ``site``.

    Ids get the name of their page in front, so that they stay unique, and links between the pages become links within
    the one. Pictures load at once, because paper does not scroll. An edition in a ``folder`` beside the site begins
    with its title and a list of its pages.
    """
    to_site = f"{Path(os.path.relpath(site, folder)).as_posix()}/" if folder else ""
    articles = {page: _article(site, page, set(pages), to_site) for page in pages}
    shell = BeautifulSoup((site / f"{pages[0]}.html").read_text(encoding="utf-8"), "html.parser")
    # Of the frame only the style sheets and the script that sets equations are of use.
    kept = [element for element in shell.head.find_all(["meta", "link", "script"]) if _wanted(element)]  # type: ignore[union-attr]
    for element in kept:
        for attribute in ("href", "src"):
            if element.get(attribute):
                element[attribute] = _address(str(element[attribute]), pages[0], set(pages), to_site)
    titles = {
        f"{_prefix(page)}page": article.h1.get_text() if article.h1 else page for page, article in articles.items()
    }
    text = fill(
        "paper.edition",
        title=title,
        to_site=to_site or "./",
        head=Markup("\n".join(map(str, kept))),
        body=Markup("\n".join(map(str, articles.values()))),
        titles=titles if folder else {},
    )
    ((folder or site) / name).write_text(f"{text}\n", encoding="utf-8")


def _wanted(element: Tag) -> bool:
    if element.name == "meta":
        return element.get("charset") is not None or element.get("name") == "viewport"
    if element.name == "link":
        return "stylesheet" in (element.get("rel") or [])
    text = f"{element.get('src', '')}{element.string or ''}"
    return "mathjax" in text.lower()


def _article(site: Path, name: str, known: set[str], to_site: str) -> Tag:
    page = site / f"{name}.html"
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article.bd-article") or soup.select_one("main")
    if article is None:
        raise ValueError(f"{page.name}: expected an article, found none")
    for gone in article.select(_NOT_FOR_PAPER):
        gone.decompose()
    for attribute in ("id", "for", "aria-labelledby", "aria-describedby"):
        for element in article.select(f"[{attribute}]"):
            element[attribute] = _prefix(name) + str(element[attribute])
    for attribute, elements in (("href", "a[href]"), ("src", "img[src]")):
        for element in article.select(elements):
            element[attribute] = _address(str(element[attribute]), name, known, to_site)
            del element["loading"]
    for fold in article.select("details"):
        fold["open"] = ""
    article.name, article.attrs = "section", {"class": "book-page", "id": f"{_prefix(name)}page"}
    return article


def _prefix(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name) + "--"


def _address(address: str, name: str, known: set[str], to_site: str) -> str:
    """Where an address on the page ``name`` leads to from the edition, which has the pages ``known``."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return address
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), parts.path or f"{posixpath.basename(name)}.html"))
    target = path.removesuffix(".html")
    if path.endswith(".html") and target in known:
        return f"#{_prefix(target)}{unquote(parts.fragment) or 'page'}"
    return parts._replace(path=to_site + path).geturl()
