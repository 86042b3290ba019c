"""What programs read that cite, index or archive the site: facts in the head of every page, lists of all pages and
files, and each page as Markdown. Nothing here is shown to a reader.

Every fact comes from the finished site and the book's identity; addresses are those that the owner has set in
``_config.yml``.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, NavigableString, Tag
from markdownify import MarkdownConverter

from companion import project
from companion.declaring import notebooks
from companion.plain import plain
from companion.running import workers
from companion.site import catalogue
from companion.site.markup import fill
from companion.site.pages import main_part

__all__ = ["Page", "write"]

_ICON = "_static/favicon.svg"
_DESCRIPTION = 300
"""Characters that indexes show of a description."""
_FRAME = (
    "script, style, svg, template, button, .headerlink, .only-dark, .prev-next-area, .toctree-wrapper, .book-cite, "
    ".eqno, .section-number, .book-checked, details.hide > summary"
)
"""What belongs to the frame of a page, to its look, or to one figure's files."""
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
    """A page with its facts in its head, written beside its form in Markdown; asked are name, summary and picture."""
    name, summary, picture = asked
    text = (site / f"{name}.html").read_text(encoding="utf-8")
    article = _article(text)
    page = _page(name, article, summary, picture)
    (site / f"{name}.md").write_text(_markdown(article, page, who), encoding="utf-8")
    head = _head(site, page, who)
    (site / page.file).write_text(text.replace("</title>", f"</title>\n{head}", 1), encoding="utf-8")
    return page


def _article(text: str) -> Tag:
    soup = BeautifulSoup(main_part(text), "html.parser")
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
    lines.append(f'<link rel="alternate" type="text/markdown" href="{posixpath.basename(page.name)}.md" />')
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
    """``llms.txt``: the title, what the book is, and every page as Markdown with one sentence."""
    first = next(page for page in pages if page.name == "index")
    lines = [f"# {who.title}", "", f"> {first.description}", ""]
    data = ", ".join(f"[{name}]({who.site}{name})" for name in (*catalogue.FILES, catalogue.INDEX))
    lines += [f"The facts as data: {data}. Pages name claims by their ids in claims.json."]
    for heading, wanted in (("Chapters", True), ("Other pages", False)):
        lines += ["", f"## {heading}", ""]
        lines += [
            f"- [{page.title}]({who.site}{page.name}.md): {page.description}"
            for page in pages
            if page.chapter is wanted and page.name != "index"
        ]
    return "\n".join(lines) + "\n"


class _Converter(MarkdownConverter):
    """HTML of a page as Markdown; formulas as TeX between dollars."""

    def convert_div(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        return f"\n\n{text.strip()}\n\n"

    def convert_dt(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        return f"\n\n**{text.strip()}**\n"


def _markdown(article: Tag, page: Page, who: project.Identity) -> str:
    """The page as Markdown: text, formulas, code, tables, and figures with what is seen in them."""
    for formula in article.select(".math"):
        # Sphinx writes \( \) and \[ \] for MathJax.
        tex = re.sub(r"^\\[(\[]|\\[)\]]$", "", formula.get_text().strip())
        tex = re.sub(r"^\\begin\{equation\}|\\end\{equation\}$", "", tex).strip()
        block = formula.name == "div"
        code = BeautifulSoup("", "html.parser").new_tag("pre" if block else "span")
        code.string = tex
        code["data-tex"] = "block" if block else "inline"
        formula.replace_with(code)
    formulas: list[str] = []
    for code in article.select("[data-tex]"):
        block = code["data-tex"] == "block"
        formulas.append(f"\n\n$$\n{code.get_text()}\n$$\n\n" if block else f"${code.get_text()}$")
        code.replace_with(NavigableString(f"FORMULA{len(formulas) - 1}FORMULA"))
    for link in article.select("a[href]"):
        link["href"] = _whole(str(link["href"]), page, who)
        if str(link["href"]).startswith(f"{_address(page, who)}#"):
            # Markdown has no places that an address could lead to.
            link.unwrap()
        elif _names_its_claim(link):
            # The id alone, by which claims.json has it: addresses of claims would be a fourth of all links.
            link.unwrap()
    for image in article.select("img[src]"):
        image["src"] = _whole(str(image["src"]), page, who)
    converter = _Converter(heading_style="ATX", code_language_callback=_language, bullets="-", wrap=False)
    text = converter.convert_soup(article)
    text = re.sub(r"FORMULA(\d+)FORMULA", lambda found: formulas[int(found[1])], text)
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return f"{text}\n\n---\nFrom {who.title}, version {who.version}: {_address(page, who)}\n"


def _names_its_claim(link: Tag) -> bool:
    """Whether a link to a claim has the claim's id for its words, whole or without the chapter before it."""
    found = re.search(r"#(?:ledger-)?claim-([a-z0-9-]+)$", str(link["href"]))
    words = re.sub(r"[^a-z0-9]+", "-", link.get_text().strip().lower())
    return found is not None and bool(words) and (found[1] == words or found[1].endswith(f"-{words}"))


def _language(element: Tag) -> str | None:
    above = element.find_parent(class_=re.compile(r"highlight-\w+"))
    names = above.get("class") if above else None
    found = re.search(r"highlight-(\w+)", " ".join(names or []))
    return {"ipython3": "python", "default": "", "myst": ""}.get(found[1], found[1]) if found else None


def _whole(address: str, page: Page, who: project.Identity) -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return address
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), parts.path)) if parts.path else page.file
    return who.site + parts._replace(path="" if path == "." else path).geturl()
