"""Writes the pages of the reference, one for every public module of the library, when the book is staged.

They are made where the contents of the book name ``reference/index``. What stands on them is read from the source (see
``companion.declaring.library``): the packages that the library needs are not imported, a function that a decorator has
turned into something else has its entry like any other, and annotations read as they were written. The one thing that
is not in the source is which chapters use an entry, which their cells say.

As an extension of Sphinx this module adds second names to the inventory, and lets a name in an annotation stand without
a link where no inventory could know it. Every other reference that leads nowhere stays a warning.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.inventory import InventoryFile

from companion import manuscript, project
from companion.declaring import notebooks
from companion.declaring.library import Entry, Library, Module, of_book
from companion.site import docstrings, names

INDEX = "reference/index"
FOLDER = "reference"
_ALIASES = "aliases.json"

_INTRODUCTION = """\
Every module of {packages} has a page, made from its source. A first line that is a formula is set as code, in the
letters of the source; the words after it say when it holds, what it costs and what it refuses. An annotation like
``Float[Array, "N N"]`` gives the numbers that an array holds and its shape: letters are sizes, the same letter is the
same size, ``*batch`` and ``...`` are any number of axes in front, ``#`` marks an axis that may have length one. Under
an entry stand the chapters that use it; in the chapters every name of the library leads here.
"""


def source(root: Path, page: str) -> str | None:
    """The file that a page of the reference was made from, by its place in the repository; None for other pages."""
    folder, _, module = page.partition("/")
    stem = Path("src", *module.split("."))
    for path in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
        if folder == FOLDER and (root / path).is_file():
            return path.as_posix()
    return None


def code(path: str) -> str:
    """Where the site has a file of code, by its place in the repository: as text, which every browser shows."""
    return f"_sources/{path}.txt"


def copy_code(root: Path, html: Path) -> None:
    """Put the code of the book's packages beside the pages, so that a reader needs no other address for it."""
    for path in manuscript.listed(root / "src", "**/*.py"):
        target = html / code(path.relative_to(root).as_posix())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def wanted(root: Path) -> bool:
    """Whether the contents of the book name the reference."""
    return INDEX in notebooks.pages(root)


def uses(chapters: Iterable[notebooks.Chapter], library: Library) -> dict[str, list[str]]:
    """Names of the chapters whose cells use an entry of the library, by the entry's name, in the order given."""
    found: dict[str, list[str]] = {}
    for chapter in chapters:
        for name in names.used(chapter.code, library.find):
            found.setdefault(name, []).append(chapter.name)
    return found


def stage(root: Path, folder: Path) -> None:
    """Write the pages into a staged book, and put them into its contents; nothing happens where nobody wants them."""
    if not wanted(root):
        return
    library = of_book(root)
    chapters = [notebooks.load(root, name) for name in notebooks.names(root)]
    titles = {chapter.name: chapter.title for chapter in chapters}
    Reference(library, uses(chapters, library), titles, _known(root)).write(folder)


@dataclass(frozen=True)
class Reference:
    """The pages of a library.

    ``uses`` are the chapters that use an entry, ``titles`` those of the chapters, ``known`` names of other projects.
    """

    library: Library
    uses: Mapping[str, Sequence[str]]
    titles: Mapping[str, str]
    known: Mapping[str, set[str]]

    def write(self, folder: Path) -> None:
        """Write the pages into a folder that holds ``_toc.yml``, and put them into its contents."""
        library = self.library
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        for module in library.modules.values():
            (folder / FOLDER / f"{module.name}.rst").write_text(self._page(module), encoding="utf-8")
        (folder / f"{INDEX}.rst").write_text(self._index(), encoding="utf-8")
        (folder / FOLDER / _ALIASES).write_text(json.dumps(library.aliases, indent=1), encoding="utf-8")
        contents = yaml.safe_load((folder / "_toc.yml").read_text(encoding="utf-8"))
        for part in contents["parts"]:
            for item in part["chapters"]:
                if item.get("file") == INDEX:
                    item["sections"] = [one for package in library.packages for one in self._contents(package)]
        (folder / "_toc.yml").write_text(yaml.safe_dump(contents, sort_keys=False), encoding="utf-8")

    def _under(self, package: str) -> list[Module]:
        return [one for name, one in self.library.modules.items() if name.rpartition(".")[0] == package]

    def _contents(self, package: str) -> list[dict[str, Any]]:
        """The modules right under a package as entries of a table of contents, each with those under it."""
        entries: list[dict[str, Any]] = []
        if package in self.library.packages:
            entries.append({"file": f"{FOLDER}/{package}", "title": package})
        for module in self._under(package):
            title = module.name.removeprefix(f"{self.library.name}.")
            below = self._contents(module.name) if module.package else []
            entries.append(
                {"file": f"{FOLDER}/{module.name}", "title": title, **({"sections": below} if below else {})}
            )
        return entries

    def _index(self) -> str:
        packages = " and ".join(f"``{package}``" for package in self.library.packages)
        lines = ["Reference", "=========", "", _INTRODUCTION.format(packages=packages), ""]
        for module in self.library.modules.values():
            lines += [f":py:mod:`{module.name}`", f"   {docstrings.prose(docstrings.first_line(module.doc))}", ""]
        return "\n".join(lines)

    def _page(self, module: Module) -> str:
        """The text of one page."""
        title = module.name
        lines = [title, "=" * len(title), "", f".. py:module:: {title}", ""]
        file = f"src/{module.path.relative_to(self.library.packages[title.partition('.')[0]].parent).as_posix()}"
        link = f'<p>Source: <a href="../{code(file)}">{file}</a></p>'
        words = self._words(module, module.doc, of_module=True)
        lines += [words, self._used(title), f".. raw:: html\n\n   {link}", ""]
        lines += self._below(module)
        for entry in module.entries:
            lines += self._entry(module, title, entry, 0)
        return "\n".join(lines) + "\n"

    def _below(self, module: Module) -> list[str]:
        """What a package holds and takes from its modules, each with a link and its first line."""
        lines = []
        if module.package and (under := self._under(module.name)):
            lines += [".. rubric:: Modules", ""]
            for one in under:
                short = one.name.rpartition(".")[2]
                words = docstrings.prose(docstrings.first_line(one.doc)) or "No description."
                lines += [f":py:mod:`{short} <{one.name}>`", f"   {words}", ""]
        taken = {local: home for local, home in module.taken.items() if home in self.library.names}
        if taken:
            lines += [".. rubric:: From other modules", ""]
            for local, home in taken.items():
                words = docstrings.summary(docstrings.first_line(self._doc(home))) or "No description."
                lines += [f":py:obj:`{local} <{home}>`", f"   {words}", ""]
        return lines

    def _doc(self, home: str) -> str:
        entry = self.library.entries.get(home)
        return entry.doc if entry else ""

    def _entry(self, module: Module, parent: str, entry: Entry, depth: int) -> list[str]:
        dotted, indent = f"{parent}.{entry.name}", "   " * depth
        call = entry.kind in ("function", "method")
        signature = entry.name
        if call or entry.arguments is not None:
            signature += f"({self._annotation(entry.arguments or '')})"
        if call and entry.returns:
            signature += f" -> {self._annotation(entry.returns)}"
        lines = [f"{indent}.. py:{entry.kind}:: {signature}"]
        if not call and entry.returns:
            lines.append(f"{indent}   :type: {self._annotation(entry.returns)}")
        lines += [f"{indent}   :{name}: {value}".rstrip() for name, value in entry.options.items()]
        body = "\n\n".join(part for part in (self._words(module, entry.doc), self._used(dotted)) if part.strip())
        lines += ["", *(f"{indent}   {line}".rstrip() for line in body.splitlines()), ""]
        for member in entry.members:
            lines += self._entry(module, dotted, member, depth + 1)
        return lines

    def _words(self, module: Module, doc: str, *, of_module: bool = False) -> str:
        """A docstring, whose names lead to entries of this library, or to those of a vendored inventory."""

        def target(name: str) -> str | None:
            dotted = self.library.meaning(module.name, name)
            known = dotted in self.library.names or (dotted and dotted in self.known.get(dotted.partition(".")[0], ()))
            return dotted if known else None

        return docstrings.restructured(doc, target, of_module=of_module) if doc.strip() else ""

    def _annotation(self, text: str) -> str:
        """Without the full names that nothing could be linked to: private ones, and those of other packages."""

        def kept(match: re.Match[str]) -> str:
            dotted = match[1]
            known = dotted in self.library.names or dotted.partition(".")[0] in self.known
            return match[0] if known else dotted.rpartition(".")[2]

        return re.sub(r"~([A-Za-z_][\w.]*)", kept, text)

    def _used(self, dotted: str) -> str:
        chapters = self.uses.get(dotted)
        if not chapters:
            return ""
        links = ", ".join(f":doc:`{docstrings.plain(self.titles[name])} </notebooks/{name}>`" for name in chapters)
        return f".. rst-class:: book-used\n\nUsed in {links}.\n"


def _known(root: Path) -> dict[str, set[str]]:
    """The names that the vendored inventories hold, by the first part of each."""
    found: dict[str, set[str]] = {}
    for project_name, listed in project.entry(root, "sphinx.config.intersphinx_mapping", dict[str, Any]()).items():
        try:
            address, place = listed
            with (root / place).open("rb") as stream:
                inventory = InventoryFile.load(stream, address, posixpath.join)
        except (TypeError, ValueError, zlib.error) as error:
            expected = f"{project_name}: expected [ADDRESS, a file with an inventory], got {listed!r}: {error}"
            raise ValueError(f"_config.yml: intersphinx_mapping: {expected}") from error
        for held in inventory.values():
            for name in held:
                found.setdefault(name.partition(".")[0], set()).add(name)
    return found


def _second_names(app: Sphinx, env: BuildEnvironment) -> None:
    """A name that a package takes from a module stands in the inventory too, and leads to the same entry."""
    path = Path(app.srcdir) / FOLDER / _ALIASES
    objects = env.get_domain("py").data["objects"]
    for alias, home in json.loads(path.read_text(encoding="utf-8")).items() if path.is_file() else ():
        if home in objects:
            objects.setdefault(alias, objects[home])


def _as_written(app: Sphinx, doctree: nodes.document) -> None:
    """Shapes between double quotation marks, as they stand in the source."""
    for text in doctree.findall(addnodes.desc_sig_literal_string):
        words = text.astext()
        if words[:1] == words[-1:] == "'" and '"' not in words:
            text.children = [nodes.Text(f'"{words[1:-1]}"')]


def _in_annotation(app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Element) -> nodes.Element | None:
    """What Sphinx does not find in an annotation because it looks for classes alone.

    A type may be a constant of a module. A name without a dot is a type variable, or what no inventory holds: plain.
    """
    place, target = str(node.get("refdoc", "")), str(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or node.get("reftype") == "mod" or not place.startswith(f"{FOLDER}/"):
        return None
    found = env.get_domain("py").resolve_xref(env, place, app.builder, "obj", target, node, content)
    return found or (content if "." not in target else None)


def _near_alone(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The contents in the margin list the pages of the reference around the open one alone, which lists no others.

    The first page of each list leads to the others. To make the list of all modules for every page takes as long as
    everything else that is written.
    """
    whole, lists = context["toctree"], app.env.tocs

    def near(**options: Any) -> str:
        if INDEX not in lists:
            return str(whole(**options))
        if pagename.startswith(f"{FOLDER}/"):
            return str(whole(**(options | {"collapse": True})))
        modules = lists[INDEX]
        lists[INDEX] = modules.deepcopy()
        for below in list(lists[INDEX].findall(addnodes.toctree)):
            below.parent.remove(below)
        try:
            return str(whole(**options))
        finally:
            lists[INDEX] = modules

    context["toctree"] = near


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the four hooks."""
    app.connect("env-updated", _second_names)
    app.connect("doctree-read", _as_written)
    app.connect("missing-reference", _in_annotation, priority=900)
    # Before the theme, which asks for the contents when it is told of a page.
    app.connect("html-page-context", _near_alone, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
