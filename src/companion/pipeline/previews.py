"""What a link points to, put where the link is: copies of equations, figures and terms of other pages, for previews.

Pages that are opened from the file system may not read each other, so that each page carries what its links need, in
<template> elements that nothing shows or loads before they are used. Targets on the same page need no copy.
"""

from __future__ import annotations

import html
import posixpath
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

__all__ = ["add"]

_PREVIEWED = "figure, div.math, dt"
"""What is shown: figures, equations, and terms with their meaning."""

_LINK = re.compile(r'<a class="[^"]*\breference internal\b[^"]*" href="([^"#]+\.html#[^"]+)"')


@cache
def _targets(page: Path, stamp: int) -> dict[str, str]:
    """Id to markup of everything on a page that can be previewed."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    found = {}
    for element in soup.select(_PREVIEWED):
        if id := element.get("id"):
            found[str(id)] = _markup(element)
    return found


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


def add(site: Path) -> int:
    """Give every page of ``site`` the templates of its links to other pages; returns how many were added."""
    added = 0
    for page in sorted(site.rglob("*.html")):
        folder = page.parent.relative_to(site).as_posix()
        if folder.startswith("_static"):
            continue
        text = page.read_text(encoding="utf-8")
        templates = []
        for link in sorted(set(_LINK.findall(text))):
            address = html.unescape(link)
            path, _, id = address.partition("#")
            other = (page.parent / unquote(path)).resolve()
            if other == page.resolve() or not other.is_file():
                continue
            markup = _targets(other, other.stat().st_mtime_ns).get(unquote(id))
            if markup is None:
                continue
            there = other.relative_to(site.resolve()).as_posix()
            templates.append(f'<template data-preview="{link}">{_relocated(markup, folder, there)}</template>')
        if templates and "</body>" in text:
            head, _, tail = text.rpartition("</body>")
            page.write_text(head + "\n".join(templates) + "\n</body>" + tail, encoding="utf-8")
            added += len(templates)
    return added
