"""Finds which names of a library a notebook uses, in code and prose, and links pages to their entries.

A name is followed through the imports of the cells before it, those that readers do not see among them. One that was
assigned meanwhile, or that is an argument of the function it stands in, is something else and stays as it is. Nothing
is imported or run.
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

from sphinx.util.inventory import InventoryFile

from companion.declaring import library, notebooks
from companion.declaring.calls import arguments_of, stored
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


class _Reader(ast.NodeVisitor):
    """Visits statements in the order in which they would run, with the names that stand for something imported."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self._lines: list[str] = []
        self._found: list[Occurrence] = []

    def read(self, code: str) -> list[Occurrence]:
        tree = _parsed(code)
        self._lines, self._found = code.splitlines(), []
        if tree is not None:
            self.visit(tree)
        return sorted(set(self._found), key=lambda one: (one.line, one.start))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imported(alias, alias.name)
        self.bound |= library.bound(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        start = self._lines[node.lineno - 1].find(node.module or "", self._column(node.lineno, node.col_offset) + 5)
        if node.module and not node.level and start >= 0:
            self._note(node.lineno, start, start + len(node.module), node.module)
        names = library.bound(node)
        for alias in node.names:
            self._imported(alias, names[alias.asname or alias.name])
        self.bound |= names

    def _imported(self, alias: ast.alias, dotted: str) -> None:
        start = self._column(alias.lineno, alias.col_offset)
        self._note(alias.lineno, start, start + len(alias.name), dotted)
        if alias.asname:
            end = self._column(alias.end_lineno or alias.lineno, alias.end_col_offset or 0)
            self._note(alias.end_lineno or alias.lineno, end - len(alias.asname), end, dotted)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if (dotted := self._dotted(node)) is None:
            self.visit(node.value)
            return
        self.visit(node.value)
        end = self._column(node.end_lineno or node.lineno, node.end_col_offset or 0)
        self._note(node.end_lineno or node.lineno, end - len(node.attr), end, dotted)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if dotted := self.bound.get(node.id):
                start = self._column(node.lineno, node.col_offset)
                self._note(node.lineno, start, start + len(node.id), dotted)
        else:
            self.bound.pop(node.id, None)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._in_order(node.value, *node.targets)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._in_order(node.value, node.target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._in_order(node.annotation, *([node.value] if node.value else []), node.target)

    def visit_For(self, node: ast.For) -> None:
        self._in_order(node.iter, node.target, *node.body, *node.orelse)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        annotations = [one.annotation for one in arguments_of(arguments) if one.annotation]
        defaults = [*arguments.defaults, *(one for one in arguments.kw_defaults if one)]
        self._in_order(*node.decorator_list, *annotations, *defaults, *([node.returns] if node.returns else []))
        self.bound.pop(node.name, None)
        self._inside(node.body, {one.arg for one in arguments_of(arguments)} | stored(node.body))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._in_order(*node.args.defaults, *(one for one in node.args.kw_defaults if one))
        self._inside([node.body], {one.arg for one in arguments_of(node.args)})

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._in_order(*node.decorator_list, *node.bases, *node.keywords)
        self.bound.pop(node.name, None)
        self._inside(node.body, set())

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before = dict(self.bound)
        for part in node.generators:
            self._in_order(part.iter, part.target, *part.ifs)
        self._in_order(*([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]))
        self.bound = before

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _in_order(self, *nodes: ast.AST) -> None:
        for node in nodes:
            self.visit(node)

    def _inside(self, body: Sequence[ast.AST], own: set[str]) -> None:
        """Visit what has a scope of its own, in which the names ``own`` stand for something else."""
        before = dict(self.bound)
        self.bound = {name: dotted for name, dotted in before.items() if name not in own}
        self._in_order(*body)
        self.bound = before

    def _dotted(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self.bound.get(node.id)
        if isinstance(node, ast.Attribute) and (base := self._dotted(node.value)):
            return f"{base}.{node.attr}"
        return None

    def _note(self, line: int, start: int, end: int, dotted: str) -> None:
        self._found.append(Occurrence(line, start, end, dotted))

    def _column(self, line: int, offset: int) -> int:
        """Syntax trees count bytes."""
        return len(self._lines[line - 1].encode()[:offset].decode())


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
        places = {(one.line, one.start): (one.end, one.name) for one in here if to(one.name)}
        done += [text[end : match.start(2)], _linked(match[2], places, to) if places else match[2]]
        end = match.end(2)
    return "".join([*done, text[end:]])


def _linked(markup: str, places: Mapping[tuple[int, int], tuple[int, str]], to: Callable[[str], str | None]) -> str:
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
            length = len(html.unescape(part))
            end, name = places.get((line, column), (0, ""))
            if part and end == column + length:
                done.append(_anchor(part, name, to(name) or ""))
            else:
                done.append(part)
            column += length
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
