"""Finds which names of a library a notebook uses, in code and prose, and links pages to their entries.

A name is followed through the imports of the cells before it, those that readers do not see among them, and stays as
it is where it stands for something else. Nothing is imported or run.
"""

from __future__ import annotations

import ast
import html
import json
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphinx.util.inventory import InventoryFile

from companion.declaring import notebooks, scopes
from companion.site import pages


@dataclass(frozen=True)
class Occurrence:
    """A part of a line of code, and the dotted name that it stands for; columns count characters."""

    line: int
    start: int
    end: int
    name: str


def occurrences(cells: Sequence[str]) -> list[list[Occurrence]]:
    """Every imported name of every cell, in the order of the notebook, each dotted name as often as it stands there."""
    reader = _Reader()
    return [reader.read(cell) for cell in cells]


def _read(cells: Sequence[str], shown: Sequence[str]) -> tuple[list[list[Occurrence]], dict[str, str]]:
    """The same for those cells of a notebook that are ``shown``, in order, and what names stand for at its end."""
    reader = _Reader()
    found: list[list[Occurrence]] = []
    for cell in cells:
        here = reader.read(cell)
        if len(found) < len(shown) and cell.strip() == shown[len(found)].strip():
            found.append(here)
    if len(found) == len(shown):
        return found, reader.bound
    # The page is no picture of this notebook: what it shows is all there is.
    reader = _Reader()
    return [reader.read(cell) for cell in shown], reader.bound


class _Reader(scopes.Reader):
    """Notes the names in imports too, and where every one stands."""

    def read(self, code: str) -> list[Occurrence]:
        self.used = []
        if (tree := _parsed(code)) is not None:
            self.visit(tree)
        found = {one for node, dotted in self.used for one in _placed(node, dotted, code.splitlines())}
        return sorted(found, key=lambda one: (one.line, one.start))

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        names = scopes.bound(node)
        super().visit_Import(node)
        if isinstance(node, ast.Import):
            self.used += [(alias, alias.name) for alias in node.names]
            return
        self.used += [(alias, names[alias.asname or alias.name]) for alias in node.names]
        if node.module and not node.level:
            self.used.append((node, node.module))

    visit_ImportFrom = visit_Import


def _placed(node: ast.AST, dotted: str, lines: Sequence[str]) -> Iterator[Occurrence]:
    """The places of a name and of what it begins with: ``package.module`` of ``package.module.name``."""

    def column(line: int, offset: int) -> int:
        # Syntax trees count bytes.
        return len(lines[line - 1].encode()[:offset].decode())

    def ending(node: Any, word: str) -> Occurrence:
        end = column(node.end_lineno, node.end_col_offset)
        return Occurrence(node.end_lineno, end - len(word), end, dotted)

    while isinstance(node, ast.Attribute):
        yield ending(node, node.attr)
        node, dotted = node.value, dotted.rpartition(".")[0]
    if isinstance(node, ast.Name):
        yield ending(node, node.id)
    elif isinstance(node, ast.alias):
        start = column(node.lineno, node.col_offset)
        yield Occurrence(node.lineno, start, start + len(node.name), dotted)
        if node.asname:
            yield ending(node, node.asname)
    elif isinstance(node, ast.ImportFrom):
        start = lines[node.lineno - 1].find(dotted, column(node.lineno, node.col_offset) + len("from "))
        if start >= 0:
            yield Occurrence(node.lineno, start, start + len(dotted), dotted)


def _parsed(code: str) -> ast.Module | None:
    """The tree of a cell, or None for one that is not Python; a line of a notebook's own commands becomes Python."""
    try:
        python = notebooks.python(code)
        # Columns of other lines hold only if there are as many.
        return ast.parse(python) if len(python.splitlines()) == len(code.splitlines()) else None
    except SyntaxError:
        return None


_CELL = re.compile(r'(<div class="cell_input[^"]*">.*?<pre>)(.*?)(</pre>)', re.DOTALL)
_LITERAL = re.compile(
    r'(?P<open><a [^>]*>)?<code class="docutils literal notranslate"><span class="pre">(?P<name>[A-Za-z_][\w.]*)'
    r"(?:\(\))?</span></code>"
)
_TAG = re.compile(r"(<[^>]+>)")


def inventory(site: Path) -> dict[str, str]:
    """Address in the site of every name that its reference documents."""
    with (site / "objects.inv").open("rb") as stream:
        loaded = InventoryFile.load(stream, "", posixpath.join)
    return {
        name: address
        for kind, names in loaded.items()
        if kind.startswith("py:")
        for name, (_, _, address, _) in names.items()
    }


def link(site: Path, packages: Collection[str]) -> list[str]:
    """Lead every name of ``packages`` in the code cells and in the prose of a site's pages to its entry.

    Returns a line for every name in prose that begins with the name of one of them and is in no entry.
    """
    known = {name: address for name, address in inventory(site).items() if name.partition(".")[0] in packages}
    by_ending = _by_ending(known)
    problems = []
    for page in pages.listed(site) if known else ():
        place = page.relative_to(site).as_posix()
        text = page.read_text(encoding="utf-8")
        to = _to(known, place)
        shown = [html.unescape(_TAG.sub("", match[2])) for match in _CELL.finditer(text)]
        found, bound = _read(_cells(site, place) or shown, shown)

        def full(name: str, bound: Mapping[str, str] = bound) -> str:
            """The whole name: from the imports of the page, or of the only entry that ends so.

            An attribute without an entry has that of its class.
            """
            first, dot, rest = name.partition(".")
            imported = f"{bound[first]}{dot}{rest}" if first in bound else name
            owner = imported.rpartition(".")[0] if first in bound else ""
            owner = owner if owner.rpartition(".")[2][:1].isupper() else ""
            return next((one for one in (imported, by_ending.get(name, ""), owner) if one in known), imported)

        done, unknown = _prose(_code(text, found, to), to, packages, full)
        problems += [f"{place}: {name} is not in the reference" for name in unknown]
        if done != text:
            page.write_text(done, encoding="utf-8")
    return problems


def _cells(site: Path, place: str) -> list[str]:
    """The code of the notebook that a page was made from, also what the page does not show; [] where there is none."""
    source = site / "_sources" / Path(place).with_suffix(".ipynb")
    if not source.is_file():
        return []
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def _by_ending(known: Mapping[str, str]) -> dict[str, str]:
    """Entry by each of its endings of two words or more, such as ``module.function``, that no other entry has."""
    found: dict[str, set[str]] = {}
    for name in known:
        words = name.split(".")
        for start in range(1, len(words) - 1):
            found.setdefault(".".join(words[start:]), set()).add(name)
    # Second names of one thing lead to one place.
    return {ending: min(names, key=len) for ending, names in found.items() if len({known[name] for name in names}) == 1}


def _to(known: Mapping[str, str], place: str) -> Callable[[str], str | None]:
    folder = posixpath.dirname(place)

    def to(name: str) -> str | None:
        if name not in known:
            return None
        path, _, anchor = known[name].partition("#")
        # What stands on this very page needs no address.
        path = "" if path == place else posixpath.relpath(path, folder or ".")
        return f"{path}#{anchor}" if anchor else path

    return to


def _code(text: str, found: Sequence[Sequence[Occurrence]], to: Callable[[str], str | None]) -> str:
    """A page whose code cells are linked; ``found`` are the names in each of them."""
    done, end = [], 0
    for match, here in zip(_CELL.finditer(text), found, strict=True):
        places = {(one.line, one.start): (one, address) for one in here if (address := to(one.name))}
        done += [text[end : match.start(2)], _linked(match[2], places) if places else match[2]]
        end = match.end(2)
    return "".join([*done, text[end:]])


def _linked(markup: str, places: Mapping[tuple[int, int], tuple[Occurrence, str]]) -> str:
    """Highlighted code with links around the words at ``places`` (line, column); a word is one piece of its markup."""
    line, column, done = 1, 0, []
    for piece in _TAG.split(markup):
        if piece.startswith("<"):
            done.append(piece)
            continue
        for part in re.split(r"(\n)", piece):
            if part == "\n":
                line, column = line + 1, 0
                done.append(part)
                continue
            end = column + len(html.unescape(part))
            occurrence, address = places.get((line, column), (None, ""))
            if part and occurrence and occurrence.end == end:
                part = _anchor(part, occurrence.name, address)
            done.append(part)
            column = end
    return "".join(done)


def _anchor(markup: str, name: str, address: str) -> str:
    return f'<a class="reference internal book-name" href="{html.escape(address)}" title="{name}">{markup}</a>'


def _prose(
    text: str, to: Callable[[str], str | None], packages: Collection[str], full: Callable[[str], str]
) -> tuple[str, list[str]]:
    """A page whose names in the font of code are linked, and those of the packages that lead nowhere."""
    unknown = []

    def linked(match: re.Match[str]) -> str:
        if match["open"] or (name := full(match["name"])).partition(".")[0] not in packages:
            return match[0]
        if address := to(name):
            return _anchor(match[0], name, address)
        unknown.append(name)
        return match[0]

    return _LITERAL.sub(linked, text), unknown


def used(cells: Sequence[str], find: Callable[[str], str | None]) -> Iterator[str]:
    """The entries that the cells of a notebook use, each once; ``find`` leads a dotted name to its entry."""
    names = (find(one.name) for found in occurrences(cells) for one in found)
    yield from dict.fromkeys(name for name in names if name)
