"""Writes the pages of the reference, one a module of the library, which Sphinx's autodoc fills from the docstrings.

A docstring is written for those who read the source: names between backticks, formulas in ASCII. What reStructuredText
would take for markup there is escaped before autodoc reads it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from companion import manuscript, pages, project

FOLDER = "reference"
INDEX = f"{FOLDER}/index"
_INTRODUCTION = """\
Every module of the library has a page, made from its docstrings. An annotation like ``Float[Array, "N N"]`` gives the
numbers that an array holds and its shape: letters are sizes, the same letter is the same size, ``*batch`` and ``...``
are any number of axes in front, ``#`` marks an axis that may have length one.
"""
_CODE = re.compile(r"``(.+?)``|(?<!`)`([^`]+)`(?!`)", re.DOTALL)
_ROW = re.compile(r"\S+(?:, \S+)* {2,}\S")
_ITEM = re.compile(r"^(?=\(\w+\) |(?:[A-Za-z]|\d+|[ivxlIVXL]+)[.)](?: |$)|[:.=>+-])")
"""What begins a list, a field or a rule where it begins a line."""
_NAME = re.compile(r"[A-Za-z_][\w.]*(?:\(\))?")


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """The public modules of the library with their files, by name."""
    folder = root / "src" / project.identity(root).library
    for path in manuscript.listed(folder, "**/*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            yield ".".join(parts), path


def stage(root: Path, stage: Path) -> list[dict[str, str]]:
    """Write the pages into a staged book, where its contents name the index; returns their entries of the contents."""
    if INDEX not in pages.pages(root):
        return []
    (stage / FOLDER).mkdir(exist_ok=True)
    index = ["Reference", "=========", "", _INTRODUCTION, ""]
    entries = []
    for name, path in sorted(modules(root)):
        doc = ast.get_docstring(manuscript.code(path)) or ""
        index += [f":py:mod:`{name}`", f"   {_prose(' '.join(doc.partition(chr(10) * 2)[0].split()))}", ""]
        taken, members = second_names(root, path), ""
        own = [one for one in _public(path) if one not in taken]
        if own or not taken:
            members = f"   :members: {', '.join(own)}\n"
        lines = [
            f":py:obj:`{local} <{home}>`, from :py:mod:`{home.rpartition('.')[0]}`\n" for local, home in taken.items()
        ]
        text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n{members}\n" + "\n".join(lines)
        (stage / FOLDER / f"{name}.rst").write_text(text, encoding="utf-8")
        entries.append({"file": f"{FOLDER}/{name}", "title": name})
    (stage / f"{INDEX}.rst").write_text("\n".join(index), encoding="utf-8")
    return entries


def _public(path: Path) -> list[str]:
    """The names in ``__all__`` of a module; [] where it has none."""
    for node in manuscript.code(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def second_names(root: Path, path: Path) -> dict[str, str]:
    """What a package takes from its modules and offers as its own: the full name by the local one."""
    if path.name != "__init__.py":
        return {}
    library = project.identity(root).library
    named = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in manuscript.code(path).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{library}.")
        for alias in node.names
    }
    return {name: named[name] for name in _public(path) if name in named}


def _lead_second_names(app: Sphinx, env: BuildEnvironment) -> None:
    """The second name of an entry leads to the entry."""
    root, objects = Path(app.config.companion_root), env.get_domain("py").data["objects"]
    for package, path in modules(root):
        for name, home in second_names(root, path).items():
            if home in objects:
                objects.setdefault(f"{package}.{name}", objects[home])


def source(root: Path, page: str) -> str:
    """The file that a page of the reference was made from, by its place in the repository; "" for other pages."""
    known = dict(modules(root)) if page.startswith(f"{FOLDER}/") else {}
    path = known.get(page.removeprefix(f"{FOLDER}/"))
    return path.relative_to(root).as_posix() if path else ""


def docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape a docstring in place: prose paragraph by paragraph; examples and tables stay as they are."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc("\n".join(lines)))
    lines[:] = "\n\n".join(map(_block, blocks)).splitlines()


def _block(block: str) -> str:
    examples = re.search(r"^ *>>>", block, re.MULTILINE)
    if examples:
        before = block[: examples.start()].rstrip()
        return (f"{_prose(before)}\n\n" if before else "") + block[examples.start() :]
    if sum(_ROW.match(line) is not None for line in block.splitlines()) > 1:
        return "::\n\n" + "\n".join(f"   {line}" for line in block.splitlines())
    return _prose(block)


def _prose(text: str) -> str:
    """Words with everything escaped that Sphinx would take for markup; code between backticks stays code or a link."""
    done, end = [], 0
    for found in _CODE.finditer(text):
        done.append(_escaped(text[end : found.start()], begins=not end))
        code = " ".join((found[1] or found[2]).split())
        is_name = _NAME.fullmatch(code)
        done.append(f":py:obj:`{code}`" if is_name else f"``{code}``")
        end = found.end()
        if re.match(r"\w", text[end:]):
            done.append("\\ ")
    return "".join([*done, _escaped(text[end:], begins=not end)])


def _escaped(text: str, *, begins: bool) -> str:
    def line(words: str, at_margin: bool) -> str:
        # A bullet at the beginning of a line is meant; the number of an equation, or an initial, is no item of a list.
        start = re.match(r"\s*(?:[-*] )?", words) if at_margin else None
        head = start[0] if start else ""
        rest = re.sub(r"([\\*|`])", r"\\\1", words[len(head) :])
        rest = _ITEM.sub(r"\\", rest) if at_margin else rest
        return head + re.sub(r"_(?=\W|$)", r"\\_", rest)

    first, *others = text.split("\n")
    return "\n".join([line(first, begins), *(line(words, True) for words in others)])


class _Written:
    """An annotation as it was written, with the full names of what the library has."""

    def __init__(self, text: str, names: Mapping[str, Any]) -> None:
        library = f"{names.get('__name__', '').partition('.')[0]}."

        def full(found: re.Match[str]) -> str:
            meant = names.get(found[0])
            place = f"{getattr(meant, '__module__', '')}.{getattr(meant, '__qualname__', '')}"
            return place if place.endswith(f".{found[0]}") and place.startswith(library) else found[0]

        self.text = re.sub(r"(?<![\w.'\"])[A-Za-z_]\w*(?![\w.]*['\"])", full, text)

    def __repr__(self) -> str:
        return self.text


def signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, given: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Annotations as they stand in the source, where shapes have their letters; None where Sphinx knows as much."""
    if what not in ("function", "method"):
        return None
    try:
        read = inspect.signature(obj)
    except (TypeError, ValueError):
        return None
    names = getattr(inspect.unwrap(obj), "__globals__", {})

    def written(one: Any) -> Any:
        return _Written(one, names) if isinstance(one, str) else one

    def named(default: Any) -> Any:
        # A function is shown with its address in memory otherwise.
        name = None if isinstance(default, type) else getattr(default, "__name__", None)
        return _Written(name, {}) if name else default

    parameters = read.parameters.values()
    own = [one.replace(annotation=written(one.annotation), default=named(one.default)) for one in parameters]
    own = own[1:] if what == "method" and own and own[0].name in ("self", "cls") else own
    result = None if read.return_annotation is inspect.Signature.empty else str(written(read.return_annotation))
    return str(inspect.Signature(own)), result


def _exactly(app: Sphinx, doctree: nodes.document) -> None:
    """A short name in an annotation means that of its module, and not any that ends so."""
    for node in doctree.findall(addnodes.pending_xref):
        if node.get("refdomain") == "py" and app.env.docname.startswith(f"{FOLDER}/"):
            node.attributes.pop("refspecific", None)


def setup(app: Sphinx) -> None:
    """Register the hooks of autodoc."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    app.connect("doctree-read", _exactly)
    app.connect("env-updated", _lead_second_names)
