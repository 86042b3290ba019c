"""Makes the book on paper: the lessons as one page to read, ``print.html`` of the site, and the audits as another.
Made from the finished pages; checks nothing.

The page of the audits is as large as all that it joins, and is there to be printed: it lies beside the site.

On paper nothing can be unfolded, moved or clicked. Answers to exercises are therefore open, while code that the site
folds away, such as that of figures, and models that run in the page are left out.
"""

from __future__ import annotations

import html
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from companion import project
from companion.declaring import notebooks

LESSONS = "print.html"
AUDITS = "print-audits.html"
_TITLE = re.compile(r"<h1\b[^>]*>(.*?)</h1>", re.DOTALL)
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
        write(site, AUDITS, audits, f"{project.identity(root).title}: the audits", folder=paper, listed=True)
        pages[AUDITS] = paper / AUDITS
    return pages


def write(
    site: Path, name: str, pages: Sequence[str], title: str, *, folder: Path | None = None, listed: bool = False
) -> None:
    """Join the articles of ``pages`` (names without .html, in order) into the page ``name`` of ``folder`` or ``site``.

    Ids get the name of their page in front, so that they stay unique, and links between the pages become links within
    the one. Pictures load at once, because paper does not scroll. With ``listed`` the title and a list of the pages
    come first.
    """
    to_site = f"{Path(os.path.relpath(site, folder)).as_posix()}/" if folder else ""
    articles = [_article(site, page, set(pages), to_site) for page in pages]
    if listed:
        articles.insert(0, _front(title, pages, articles))
    shell = BeautifulSoup((site / f"{pages[0]}.html").read_text(encoding="utf-8"), "html.parser")
    at = Path(pages[0]).parent
    # Of the frame only the style sheets and the script that sets equations are of use.
    kept = [element for element in shell.head.find_all(["meta", "link", "script"]) if _wanted(element)]  # type: ignore[union-attr]
    for element in kept:
        for attribute in ("href", "src"):
            if element.get(attribute):
                element[attribute] = _relative(str(element[attribute]), at, to_site)
    head, body = "\n".join(map(str, kept)), "\n".join(articles)
    attributes = f'lang="en" data-theme="light" data-mode="light" data-content_root="{to_site or "./"}"'
    ((folder or site) / name).write_text(
        f"<!DOCTYPE html>\n<html {attributes}>\n<head>\n{head}\n<title>{html.escape(title)}</title>\n</head>\n"
        f'<body>\n<main class="bd-content book-whole-book">\n{body}\n</main>\n</body>\n</html>\n',
        encoding="utf-8",
    )


def _wanted(element: Tag) -> bool:
    if element.name == "meta":
        return element.get("charset") is not None or element.get("name") == "viewport"
    if element.name == "link":
        return "stylesheet" in (element.get("rel") or [])
    text = f"{element.get('src', '')}{element.string or ''}"
    return "mathjax" in text.lower()


def _front(title: str, pages: Sequence[str], articles: Sequence[str]) -> str:
    """The title of an edition, and its pages as links."""
    names = [
        re.sub(r"<[^>]*>", "", found[1]) if (found := _TITLE.search(article)) else page
        for page, article in zip(pages, articles, strict=True)
    ]
    rows = "".join(
        f'<li><a href="#{_prefix(page)}page">{name}</a></li>' for page, name in zip(pages, names, strict=True)
    )
    return f'<section class="book-page"><h1>{html.escape(title)}</h1><ol>{rows}</ol></section>'


def _article(site: Path, name: str, known: set[str], to_site: str) -> str:
    page = site / f"{name}.html"
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article.bd-article") or soup.select_one("main")
    if article is None:
        raise ValueError(f"{page.name}: expected an article, found none")
    for gone in article.select(_NOT_FOR_PAPER):
        gone.decompose()
    prefix = _prefix(name)
    for element in article.select("[id]"):
        element["id"] = prefix + str(element["id"])
    for attribute in ("for", "aria-labelledby", "aria-describedby"):
        for element in article.select(f"[{attribute}]"):
            element[attribute] = prefix + str(element[attribute])
    folder = Path(name).parent
    for link in article.select("a[href]"):
        link["href"] = _address(str(link["href"]), name, folder, known, to_site)
    for image in article.select("img[src]"):
        image["src"] = _relative(str(image["src"]), folder, to_site)
        del image["loading"]
    for fold in article.select("details"):
        fold["open"] = ""
    return f'<section class="book-page" id="{prefix}page">{article.decode_contents()}</section>'


def _prefix(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name) + "--"


def _relative(address: str, folder: Path, to_site: str = "") -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or not parts.path:
        return address
    return parts._replace(path=to_site + posixpath.normpath((folder / parts.path).as_posix())).geturl()


def _address(address: str, name: str, folder: Path, known: set[str], to_site: str) -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return address
    if not parts.path:
        return f"#{_prefix(name)}{unquote(parts.fragment)}" if parts.fragment else f"#{_prefix(name)}page"
    moved = urlsplit(_relative(address, folder))
    target = moved.path.removesuffix(".html")
    if moved.path.endswith(".html") and target in known:
        return f"#{_prefix(target)}{unquote(moved.fragment) or 'page'}"
    return moved._replace(path=to_site + moved.path).geturl()
