"""Finds what the built pages load and link to, from their HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_PAGE_LIMIT = 3_000_000
"""What all pages share, 0.9 MB for style and equations, is not counted."""
# Most are the figures, whose drawings and tables are there twice, as files and in the archive of each, and text. Of the
# rest 22 MB are the notebooks that run alone, each with the modules that its page imports and with its pictures; two of
# them carry states of a trained network.
_SITE_LIMIT = 110_000_000
# The edition for paper and the gallery show everything.
_WHOLE_BOOK = {"print.html", "gallery.html"}
_MAIN = re.compile(r"<main\b.*?</main>", re.DOTALL)
_CODE = re.compile(r'(<div class="cell_input[^"]*">.*?<pre>).*?(</pre>)', re.DOTALL)
_EXTERNAL = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
_LOADING_RELATION = re.compile(
    r"\b(?:stylesheet|preload|prefetch|modulepreload|icon|shortcut|manifest|preconnect)\b", re.IGNORECASE
)
_SCHEMES = ("http", "https", "mailto")
"""What a link to outside may begin with; others, as javascript, run something or open what is the reader's own."""
_LEADING = {"href", "xlink:href", "action", "formaction"}
"""Attributes with an address that a reader can follow, but for the elements that load it."""
_LOADING = {"image", "link", "use"}
_LOADED = {"src", "srcset", "poster", "data"}
"""Attributes with an address that a page loads; what is loaded into a window within the page leads there as well."""
_WINDOWS = {"embed", "iframe", "object"}
_STYLE_LOAD = re.compile(r"(?:@import\s+(?:url\()?|url\()\s*['\"]?((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
_SCRIPT_LOAD = re.compile(
    r"(?:import\s*\(|importScripts\s*\(|fetch\s*\(|\.src\s*=|from)\s*['\"]((?:https?:)?//[^'\"]+)['\"]", re.IGNORECASE
)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.loads: list[str] = []
        self.links: list[str] = []
        self.leading: list[str] = []
        self.anchors: set[str] = set()
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._inside = tag if tag in ("script", "style") else ""
        if id := values.get("id"):
            self.anchors.add(id)
        if tag == "a" and (name := values.get("name")):
            self.anchors.add(name)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            self.leading.append(values.get("content", "").partition("=")[2].strip(" '\""))
        # Of the links in the head of a page some load nothing, such as those to other editions.
        loading = tag in _LOADING and (tag != "link" or _LOADING_RELATION.search(values.get("rel", "")))
        for name, value in values.items():
            if (name in _LEADING and tag not in _LOADING) or (name in _LOADED and tag in _WINDOWS):
                self.leading.append(value)
            if name in _LOADED or (name in _LEADING and loading):
                parts = value.split(",") if name == "srcset" else [value]
                self.loads += [part.split()[0] for part in parts if part.strip()]
        self.loads += _STYLE_LOAD.findall(values.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.loads += _STYLE_LOAD.findall(data)
        elif self._inside == "script":
            self.loads += _SCRIPT_LOAD.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def main_part(text: str) -> str:
    """What stands in <main>, or the whole page if it has none: contents and menus around it are most of some pages.

    >>> main_part("<nav>Menu</nav><main id='a'>Text</main>")
    "<main id='a'>Text</main>"
    """
    main = _MAIN.search(text)
    return main[0] if main else text


def without_code(text: str) -> str:
    """The text of a page without the code of its cells, whose words in colours are most of the elements of an audit.

    >>> without_code('<div class="cell_input docutils container"><pre><span>x</span></pre></div><p>Text</p>')
    '<div class="cell_input docutils container"><pre></pre></div><p>Text</p>'
    """
    return _CODE.sub(r"\1\2", text)


@cache
def _read(path: Path, stamp: int) -> _Reader:
    reader = _Reader()
    reader.feed(_text(path))
    return reader


def _reader(path: Path) -> _Reader:
    return _read(path, path.stat().st_mtime_ns)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def external_loads(site: Path) -> list[str]:
    """ "PAGE: ADDRESS" for everything that a page or style sheet of ``site`` loads from outside. Links do not count."""
    loads = {page: [load for load in _reader(page).loads if _EXTERNAL.match(load)] for page in listed(site)}
    loads |= {sheet: _STYLE_LOAD.findall(_text(sheet)) for sheet in sorted(site.rglob("*.css"))}
    return [f"{file.relative_to(site)}: {load}" for file, found in loads.items() for load in found]


def unsafe_links(site: Path) -> list[str]:
    """ "PAGE: LINK" for every link, in pages and drawings, that leads to no page, web address or mailbox."""
    leading = {page: _reader(page).leading for page in listed(site)}
    for drawing in sorted((site / "figures").rglob("*.svg")):
        links = map(unescape, re.findall(r"href\s*=\s*[\"']([^\"']*)", _text(drawing)))
        # Matplotlib puts the pixels of an image into the drawing.
        leading[drawing] = [link for link in links if not link.startswith("data:image/png;base64,")]
    return [
        f"{file.relative_to(site)}: {link[:80]}"
        for file, links in leading.items()
        for link in links
        if not _is_safe(link)
    ]


def _is_safe(link: str) -> bool:
    """Whether a browser that ignores spaces and control characters, as browsers do, stays among pages."""
    scheme = re.match(r"([a-z][a-z0-9+.-]*):", re.sub(r"[\x00-\x20]", "", link), re.IGNORECASE)
    return scheme is None or scheme[1].lower() in _SCHEMES


def weight(page: Path) -> int:
    """Bytes of a page and of the pictures that it shows in one theme; what all pages share is not counted."""
    shown = {load for load in _reader(page).loads if "figures/" in load and "-dark." not in load}
    files = (page.parent / unquote(load) for load in shown if not load.startswith("http"))
    return page.stat().st_size + sum(file.stat().st_size for file in files if file.is_file())


def overweight(site: Path) -> list[str]:
    """One line for every page, and for the whole site, that is heavier than a reader's connection should bear."""
    found = [
        f"page too heavy: {page.relative_to(site)} has {heavy / 1e6:.1f} MB of text and pictures, more than "
        f"{_PAGE_LIMIT / 1e6:g} MB"
        for page in listed(site)
        if page.name not in _WHOLE_BOOK and (heavy := weight(page)) > _PAGE_LIMIT
    ]
    total = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
    if total > _SITE_LIMIT:
        found.append(f"site too heavy: {total / 1e6:.1f} MB, more than {_SITE_LIMIT / 1e6:g} MB")
    return found


def broken_links(site: Path) -> list[str]:
    """ "PAGE: LINK" for every link or load inside ``site`` whose file or anchor does not exist."""
    return [
        f"{page.relative_to(site)}: {link}"
        for page in listed(site)
        for link in (*_reader(page).links, *_reader(page).loads)
        if not _resolves(page, link)
    ]


def _resolves(page: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    if not parts.fragment or target.suffix != ".html":
        return True
    return unquote(parts.fragment) in _reader(target).anchors


def listed(site: Path) -> Iterator[Path]:
    """The pages of a site, in the order of their paths."""
    for page in sorted(site.rglob("*.html")):
        if "_static" not in page.relative_to(site).parts:
            yield page
