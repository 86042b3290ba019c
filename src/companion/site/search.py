"""Writes the index of the search, as a script that a page from the file system can load too.

Sphinx's own search knows pages only, and reads them over the network to show an excerpt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from companion.plain import tex
from companion.running import workers
from companion.site.pages import main_part, without_code

INDEX = "search-index.js"
_PAGE = "search.html"
_NOT_SOUGHT = {"search.html", "genindex.html", "print.html", "404.html", "py-modindex.html"}
# Code is found by the names in it, which the reference lists; folds, and tables of evidence on functions, claims and
# faults, repeat what stands elsewhere.
_LEFT_OUT = {"script", "style", "svg", "template", "button", "nav"}
_CLASSES_LEFT_OUT = {
    "headerlink",
    "only-dark",
    "cell_input",
    "book-cite",
    "book-provenance",
    "eqno",
    "book-checked",
    "toctree-wrapper",
    "prev-next-area",
    "MathJax_Preview",
    "book-used",
    "book-evidence",
    "book-names",
}
_SPHINXS = ("_static/searchtools.js", "_static/language_data.js", "searchindex.js")
_SCRIPTS = re.compile(rf'\s*<script [^>]*\bsrc="(?:\.\./)*(?:{"|".join(map(re.escape, _SPHINXS))})[^>]*></script>')


def write(site: Path, each: workers.Each = workers.alone) -> None:
    """Write the index of all pages of ``site`` and make its search page use it."""
    names = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    sought = [name for name in names if not name.startswith(("_static/", "figures/"))]
    entries = [entry for entries in each(partial(_page, site), sought) for entry in entries]
    # What the entries of a page share stands once.
    pages: dict[tuple[str, str], list[list[str]]] = {}
    for one in entries:
        pages.setdefault((one["file"], one["page"]), []).append([one["title"], one["anchor"], one["text"]])
    grouped = [[file, page, sections] for (file, page), sections in pages.items()]
    index = json.dumps(grouped, ensure_ascii=False, separators=(",", ":"))
    (site / INDEX).write_text(f"window.BOOK_SECTIONS={index};\n", encoding="utf-8")
    for old in _SPHINXS:
        (site / old).unlink(missing_ok=True)


def _page(site: Path, name: str) -> list[dict[str, str]]:
    """The entries of a page, which is written anew without the search that the theme loads on every page."""
    page = site / name
    text = page.read_text(encoding="utf-8")
    alone = _SCRIPTS.sub("", text)
    if name == _PAGE:
        own = f'<script src="_static/minisearch.js"></script>\n<script src="{INDEX}"></script>\n'
        alone = alone.replace("</head>", f'{own}<script defer src="_static/search.js"></script>\n</head>', 1)
    if alone != text:
        page.write_text(alone, encoding="utf-8")
    return [] if name in _NOT_SOUGHT else list(_entries(name, text))


def _entries(name: str, text: str) -> Iterator[dict[str, str]]:
    """One entry for every section, claim, term and name of the library that stands on a page."""
    soup = BeautifulSoup(without_code(main_part(text)), "html.parser")
    article = soup.select_one("article.bd-article")
    if article is None:
        return
    for gone in [one for one in _tags(article) if _is_left_out(one)]:
        gone.decompose()
    tags = list(_tags(article))
    for formula in [one for one in tags if "math" in one.get_attribute_list("class")]:
        formula.replace_with(tex(re.sub(r"^\\[(\[]|\\[)\]]$", "", formula.get_text().strip())))
    heading = article.find("h1")
    page = _words(heading) or name

    def entry(title: str, anchor: str, content: str) -> dict[str, str]:
        return {"page": page, "file": name, "title": title, "anchor": anchor, "text": content}

    named = [one for one in tags if one.get("id")]
    cards = (one for one in named if one.name == "li" and one.find_parent(class_="book-corrections"))
    for row in [*(one for one in named if one.name == "tr"), *cards]:
        code, cell = row.find("code") or row.select_one(".book-claim-id"), row.find(["td", "p"])
        claim = _words(code) or str(row["id"])
        yield entry(claim, str(row["id"]), _words(cell).removeprefix(claim).strip())
        row.decompose()
    for term in [one for one in named if one.name == "dt" and not one.decomposed]:
        meaning, of_library = term.find_next_sibling("dd"), "sig" in term.get_attribute_list("class")
        first = meaning.find("p") if meaning and of_library else meaning
        yield entry(str(term["id"]) if of_library else _words(term), str(term["id"]), _words(first))
    for definition in tags:
        if definition.decomposed or definition.name != "dl":
            continue
        if {"py", "glossary"}.intersection(definition.get_attribute_list("class")):
            definition.decompose()
    # The innermost first, so that what is left of a section is its own.
    sections = [one for one in named if one.name == "section" and not one.decomposed]
    for section in reversed(sections):
        title = section.find(re.compile(r"^h[1-6]$"))
        words = _words(title) or page
        if title:
            title.decompose()
        content = _words(section)
        anchor = "" if section is sections[0] else str(section["id"])
        section.decompose()
        if content or words != page:
            yield entry(words, anchor, content)


def _tags(article: Tag) -> Iterator[Tag]:
    """The elements of a page in their order; rules of style sheets would each be asked of each of them."""
    return (one for one in article.descendants if isinstance(one, Tag))


def _is_left_out(element: Tag) -> bool:
    if element.name in _LEFT_OUT or _CLASSES_LEFT_OUT.intersection(element.get_attribute_list("class")):
        return True
    above = element.parent
    return element.name == "summary" and above is not None and "hide" in above.get_attribute_list("class")


def _words(element: Tag | None) -> str:
    return re.sub(r" (?=[,.;:)])", "", " ".join(element.get_text(" ").split())) if element else ""
