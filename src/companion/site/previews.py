"""What a link points to, put where the link is: copies of equations, figures and terms of other pages, for previews.

Pages that are opened from the file system may not read each other, so that each page carries what its links need, in
<template> elements that nothing shows or loads before they are used. Targets on the same page need no copy.
"""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from companion.running import workers
from companion.site.pages import listed, main_part, without_code

_LINK = re.compile(r'<a class="[^"]*\breference internal\b[^"]*" href="([^"#]+\.html#[^"]+)"')


def _targets(asked: tuple[Path, set[str]]) -> dict[str, str]:
    """Id to markup of what can be previewed on a page, of these ids."""
    page, wanted = asked
    soup = BeautifulSoup(without_code(main_part(page.read_text(encoding="utf-8"))), "html.parser")
    named = [one for one in soup.descendants if isinstance(one, Tag) and one.get("id") in wanted]
    return {str(element["id"]): _markup(element) for element in named if _is_previewed(element)}


def _is_previewed(element: Tag) -> bool:
    """Whether it is a figure, an equation, or a term with its meaning."""
    is_equation = element.name == "div" and "math" in element.get_attribute_list("class")
    return is_equation or element.name in ("figure", "dt")


def _markup(element: Tag) -> str:
    for fold in element.select("details, .legend, .only-dark, .headerlink"):
        fold.decompose()
    if element.name == "dt":
        meaning = element.find_next_sibling("dd")
        if "sig" in (element.get("class") or []):
            # Nobody can follow a link of a preview, and a signature has one for every annotation.
            for link in element.select("a"):
                link.unwrap()
            # Of an entry of the reference its first paragraph, which says what it computes.
            first = meaning.find("p", recursive=False) if isinstance(meaning, Tag) else None
            return f"<dl>{element}<dd>{first or ''}</dd></dl>"
        return f"<dl>{element}{meaning or ''}</dl>"
    return str(element)


def _relocated(markup: str, here: str, there: str) -> str:
    """Addresses in ``markup``, relative to the page ``there``, made relative to the folder ``here``."""

    def moved(match: re.Match[str]) -> str:
        address = html.unescape(match[2])
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
            return match[0]
        target = posixpath.join(posixpath.dirname(there), parts.path) if parts.path else there
        path = posixpath.relpath(posixpath.normpath(target), here or ".")
        return f'{match[1]}="{html.escape(parts._replace(path=path).geturl())}"'

    markup = re.sub(r' id="[^"]*"', "", markup)
    return re.sub(r'(?<= )(src|href)="([^"]*)"', moved, markup)


def add(site: Path, each: workers.Each = workers.alone) -> None:
    """Give every page of ``site`` the templates of its links to other pages."""
    links: dict[Path, list[tuple[str, Path, str]]] = {}
    wanted: dict[Path, set[str]] = {}
    for page in listed(site):
        for link in sorted(set(_LINK.findall(page.read_text(encoding="utf-8")))):
            path, _, id = html.unescape(link).partition("#")
            other = (page.parent / unquote(path)).resolve()
            if other != page.resolve() and other.is_file():
                links.setdefault(page, []).append((link, other, unquote(id)))
                wanted.setdefault(other, set()).add(unquote(id))
    # All are read before the first is changed.
    found = dict(zip(wanted, each(_targets, list(wanted.items())), strict=True))
    for page, its_links in links.items():
        folder = page.parent.relative_to(site).as_posix()
        templates = []
        for link, other, id in its_links:
            if id in found[other]:
                there = other.relative_to(site.resolve()).as_posix()
                markup = _relocated(found[other][id], folder, there)
                templates.append(f'<template data-preview="{link}">{markup}</template>')
        text = page.read_text(encoding="utf-8")
        if templates and "</body>" in text:
            head, _, tail = text.rpartition("</body>")
            page.write_text(head + "\n".join(templates) + "\n</body>" + tail, encoding="utf-8")
